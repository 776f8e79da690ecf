//! TLS: libnbd's clients, and operations that must not be possible.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bimetal_live::MemoryDevice;
use bimetal_live::nbd::proto::*;
use bimetal_live::nbd::{Export, Options, TlsError, TlsServer};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::*;
use crate::programs::Program;
use crate::running::*;

/// A root certificate and two identities signed by it, in files with the names that libnbd requires.
fn make_certificates(folder: &Path) {
    let mut root = CertificateParams::new([]).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
    fs::write(folder.join("ca-cert.pem"), root.pem()).unwrap();
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).unwrap();
        let certificate = parameters.signed_by(&key, &root).unwrap();
        fs::write(folder.join(format!("{name}-cert.pem")), certificate.pem()).unwrap();
        fs::write(folder.join(format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }
}

fn server(certificates: &Path, clients_prove: bool, family: &str) -> Running {
    server_with(certificates, clients_prove, family, Options::default())
}

fn server_with(certificates: &Path, clients_prove: bool, family: &str, options: Options) -> Running {
    let root = certificates.join("ca-cert.pem");
    let roots = clients_prove.then_some(&*root);
    let (certificate, key) = (certificates.join("server-cert.pem"), certificates.join("server-key.pem"));
    let tls = TlsServer::from_files(&certificate, &key, roots).unwrap();
    let options = Options { tls: Some(tls), ..options };
    Running::with(Arc::new(MemoryDevice::new(1 << 15)), Export::default(), options, family)
}

/// The URI for libnbd's clients, with their certificates.
fn uri_of(running: &Running, certificates: &Path) -> String {
    let uri = running.uri().replace("nbd", "nbds");
    let uri = if uri.contains('?') { uri + "&" } else { uri + "?" };
    format!("{uri}tls-certificates={}", certificates.display())
}

#[test]
fn clients_with_tls_are_served_and_others_are_not() {
    let certificates = tempfile::tempdir().unwrap();
    make_certificates(certificates.path());
    let stranger = tempfile::tempdir().unwrap();
    make_certificates(stranger.path());
    fs::copy(certificates.path().join("ca-cert.pem"), stranger.path().join("ca-cert.pem")).unwrap();
    let (Some(info), Some(copy)) = (Program::find("nbdinfo"), Program::find("nbdcopy")) else { return };
    for family in ["tcp", "unix"] {
        let running = server(certificates.path(), true, family);
        let uri = uri_of(&running, certificates.path());
        let told = info.run(&[&uri]);
        assert!(told.contains("newstyle-fixed with TLS"), "{told}");
        let (data, back) = (certificates.path().join("data"), certificates.path().join("back"));
        let text: Vec<u8> = (0..8 << 20).map(|at: u32| (at / 97) as u8).collect();
        fs::write(&data, &text).unwrap();
        copy.run(&[&*data.to_string_lossy(), &uri]);
        copy.run(&[&uri, &*back.to_string_lossy()]);
        assert!(fs::read(&back).unwrap()[..text.len()] == text);
        info.fail(&[&running.uri()]);
        info.fail(&[&uri_of(&running, stranger.path())]);
        running.stop().unwrap();
    }
    // If clients need not authenticate, unknown clients are served.
    let running = server(certificates.path(), false, "tcp");
    info.run(&[&uri_of(&running, stranger.path())]);
}

#[test]
fn what_is_sent_before_tls_has_started_ends_the_connection() {
    let certificates = tempfile::tempdir().unwrap();
    make_certificates(certificates.path());
    let running = server(certificates.path(), false, "unix");
    let mut client = running.connect();
    receive(&mut client, 18);
    let start = [client_flags(), option(NBD_OPT_STARTTLS, &[])].concat();
    client.write_all(&[start.clone(), option(NBD_OPT_STRUCTURED_REPLY, &[])].concat()).unwrap();
    let sent = rest(&mut client);
    assert_eq!(Heard(&sent).reply_types(), [NBD_REP_ACK], "no answer to the plain text that came with it");
    // Data that are not TLS, after the start of TLS.
    let mut client = running.connect();
    client.write_all(&start).unwrap();
    receive(&mut client, 18 + 20);
    client.write_all(&option(NBD_OPT_GO, &info(b"", &[]))).unwrap();
    let sent = rest(&mut client);
    assert!(sent.first().is_none_or(|&kind| kind == 21), "an alert of TLS at most: {sent:?}");
}

/// A client that has negotiated.
fn client(running: &Running, certificates: &Path) -> StreamOwned<ClientConnection, UnixStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates.join("ca-cert.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let connection = ClientConnection::new(Arc::new(config.with_no_client_auth()), "localhost".try_into().unwrap());
    let mut socket = running.connect();
    socket.write_all(&[client_flags(), option(NBD_OPT_STARTTLS, &[])].concat()).unwrap();
    receive(&mut socket, 18 + 20);
    let mut client = StreamOwned::new(connection.unwrap(), socket);
    client.write_all(&option(NBD_OPT_GO, &info(b"", &[]))).unwrap();
    receive(&mut client, 20 + 12 + 20);
    client
}

/// Replies of many lengths: some fill the system's buffer and leave no room for the end of TLS.
#[test]
fn the_end_of_tls_does_not_wait_for_a_client_that_reads_nothing() {
    let certificates = tempfile::tempdir().unwrap();
    make_certificates(certificates.path());
    let options = Options { connections: 128, stall: Duration::from_millis(500), ..Options::default() };
    let running = server_with(certificates.path(), false, "unix", options);
    let leave = |kib: u32| {
        let mut client = client(&running, certificates.path());
        let requests = [request(0, NBD_CMD_READ, 5, 0, kib << 10), request(0, NBD_CMD_DISC, 6, 0, 0)];
        client.write_all(&requests.concat()).unwrap();
        (kib, client.sock)
    };
    let mut left: Vec<_> = (128..384).step_by(4).map(leave).collect();
    let start = Instant::now();
    while !left.is_empty() {
        // A closed connection takes nothing.
        left.retain_mut(|(_, socket)| socket.write_all(&[0]).is_ok());
        let lengths = left.iter().map(|(kib, _)| kib).collect::<Vec<_>>();
        assert!(start.elapsed() < Duration::from_secs(20), "{lengths:?}");
        // Rarely: nobody reads these bytes, and a full buffer would block this thread.
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let folder = tempfile::tempdir().unwrap();
    make_certificates(folder.path());
    let file = |name: &str| folder.path().join(name);
    fs::write(file("empty.pem"), "").unwrap();
    let (certificate, key, empty) = (file("server-cert.pem"), file("server-key.pem"), file("empty.pem"));
    let error = |certificate: &Path, key: &Path, roots: Option<&Path>| {
        let error = TlsServer::from_files(certificate, key, roots).unwrap_err();
        (matches!(error, TlsError::File { .. }), error.to_string())
    };
    for (certificate, key, roots, at_fault) in [
        (&empty, &key, None, &empty),
        (&certificate, &empty, None, &empty),
        (&certificate, &key, Some(&*empty), &empty),
        (&certificate, &certificate, None, &certificate),
    ] {
        let (of_file, text) = error(certificate, key, roots);
        assert!(of_file && text.contains(&*at_fault.to_string_lossy()), "{text}");
    }
    let (of_file, text) = error(&certificate, &file("client-key.pem"), None);
    assert!(!of_file && text.contains("server-cert.pem"), "{text}");
}
