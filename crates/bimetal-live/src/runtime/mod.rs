//! The serving runtime: makes an open store a device for clients.
//!
//! A [`Service`] exports a store over NBD and, on request, as a file, as a disk, and to a virtual machine. It gives the scheme the
//! idle time of the host, answers `bimetal stat`, and serves figures as OpenMetrics over HTTP. `bimetal serve` adds
//! only arguments. Another program can serve a store like this:
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use bimetal_live::runtime::{Service, ServiceSettings, at_signals};
//! use bimetal_live::store::{Directory, OpenOptions, Store};
//!
//! let path = Path::new("disk.store");
//! let store = Store::open(Arc::new(Directory::new(path)), OpenOptions::default())?;
//! let service = Service::start(path, Arc::new(store), ServiceSettings::default())?;
//! println!("{}", service.uri());
//! let stop = service.stop();
//! at_signals(move || stop.stop())?;
//! service.run()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | subject | module |
//! |---|---|
//! | start, operation and stop of a service | `service` |
//! | the socket for clients, and its URI | `socket` |
//! | answers to `bimetal stat` and to collectors of metrics | `questions`; `health::figures` has the measurements of the service itself |
//! | backups of a served store | `backups` |
//! | background work in idle time, observation of the store for the log | `housekeeping` |
//! | signals, open files | `signals`, `open_files` |
//! | systemd: notifications, its watchdog, sockets that it passes | [`systemd`] |

mod backups;
mod error;
mod housekeeping;
mod open_files;
mod questions;
mod service;
mod signals;
mod socket;
pub mod systemd;

pub use backups::BACKUP_SOCKET;
pub use error::{ServeError, Warning};
pub use open_files::raise_open_files;
pub use questions::{Answer, STAT_SOCKET};
pub use service::{Service, ServiceSettings};
pub use signals::at_signals;
pub use socket::{Listen, NBD_SOCKET, uri};
