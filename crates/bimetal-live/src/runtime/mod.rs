//! The serving runtime: everything around an open store that makes it a device for others.
//!
//! A [`Service`] exports a store over NBD and, on request, as a file and to a virtual machine. It gives the scheme the idle time
//! of the host, answers `bimetal stat`, and serves figures as OpenMetrics over HTTP. `bimetal serve` is this with arguments
//! around it. Another program serves a store of its own like this:
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
//! | the order of things | `service` |
//! | where clients connect, and the URI that they are given | `socket` |
//! | answers to `bimetal stat` and to collectors of metrics | `questions`; `health::figures` has the measurements of the service itself |
//! | backups while it is served | `backups` |
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
