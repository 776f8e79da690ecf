//! TLS with X.509 certificates.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// A client's socket under TLS.
pub type TlsStream<S> = StreamOwned<ServerConnection, S>;

/// Certificates of the server, and the authorities of its clients.
#[derive(Clone, Debug)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as PEM, or lacks a certificate or key.
    #[error("`{}`: the {what} cannot be read: {reason}; PEM is wanted", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The expected content.
        what: &'static str,
        /// The error.
        reason: String,
    },
    /// Certificates and key do not match, or cannot be used.
    #[error("`{}` and its key cannot be used: {reason}", file.display())]
    Identity {
        /// The file of certificates.
        file: PathBuf,
        /// The error.
        reason: String,
    },
}

impl TlsServer {
    /// Reads PEM files: the server's certificate with its chain, its private key, and, if clients must authenticate,
    /// the roots of their certificates.
    pub fn from_files(certificate: &Path, key: &Path, client_roots: Option<&Path>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let identity =
            |reason: rustls::Error| TlsError::Identity { file: certificate.into(), reason: reason.to_string() };
        let chain = certificates(certificate)?;
        let key_file = |reason: String| TlsError::File { file: key.into(), what: "private key", reason };
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| key_file(error.to_string()))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(identity)?;
        let builder = match client_roots {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let unusable =
                    |reason: String| TlsError::File { file: file.into(), what: "certificate of a root", reason };
                let mut roots = RootCertStore::empty();
                for root in certificates(file)? {
                    roots.add(root).map_err(|error| unusable(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| unusable(error.to_string()))?)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(|reason| match reason {
            rustls::Error::InconsistentKeys(_) => TlsError::Identity {
                file: certificate.into(),
                reason: "the key does not belong to the certificate".to_owned(),
            },
            reason => identity(reason),
        })?;
        Ok(Self { config: Arc::new(config) })
    }

    /// Performs the handshake; returns when data can be exchanged.
    pub(super) fn accept<S: Read + Write>(&self, mut socket: S) -> io::Result<TlsStream<S>> {
        let mut connection = ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(StreamOwned::new(connection, socket))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |reason: String| TlsError::File { file: file.into(), what: "certificate", reason };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match found {
        Ok(found) if found.is_empty() => Err(unreadable("there is none".into())),
        Ok(found) => Ok(found),
        Err(error) => Err(unreadable(error.to_string())),
    }
}
