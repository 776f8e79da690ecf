//! Arguments of the commands for the device itself: `create`, `serve`, `stat`, `copy`, `check`, `dump` and `bench`.

use std::path::PathBuf;

use bimetal_core::units::ByteSize;
use bimetal_live::SECTOR_BYTES;
use bimetal_live::nbd::{Address, EXPORT_NAME_BYTES_MAX, MEMORY_BYTES_MIN};
use bimetal_live::ublk::Number;
use clap::{Args, Subcommand, ValueEnum};

use super::{JsonArgs, setting, whole};

#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Make a store: a block device of a scheme, kept in files or on block devices
    Create(CreateArgs),
    /// Serve a store as a network block device (NBD)
    Serve(ServeArgs),
    /// Show the statistics of a store: host traffic, write amplification by cause, wear, in the terms of a drive's
    /// SMART log
    Stat(StatArgs),
    /// Copy a store to a new one, optionally with another scheme, device or capacity
    Copy(CopyArgs),
    /// Make a store larger: the same device with more blocks
    Grow(GrowArgs),
    /// Verify every page of a store, and rescue its data if it can no longer be opened
    Check(CheckArgs),
    /// Show the contents of a store's files
    Dump(DumpArgs),
    /// Measure the cost of serving, compared with other servers
    Bench(BenchArgs),
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Directory of the store; created if it is missing
    pub store: PathBuf,
    /// Scheme of the store; by default the scheme of the device
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Capacity that the host sees; by default the capacity of the device, or 512MiB if the device is scaled
    #[arg(long, value_name = "SIZE", value_parser = capacity)]
    pub capacity: Option<ByteSize>,
    /// A device of `bimetal list devices`, or the path of a device file. `bare-dies` is scaled to the capacity: a
    /// `fast` region of 1.25 % of the capacity in front of a `slow` region with 5 % spare area; hybrids of one region
    /// get a larger region at equal cost
    #[arg(long, value_name = "NAME|FILE", default_value = "bare-dies")]
    pub device: String,
    /// Set a parameter of the scheme, or a field of the device, as for `replay` (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Location of a new store.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// Keep a region of the device in this file or block device, such as `fast=/dev/nvme0n1`, and not in the store's
    /// directory (repeatable)
    #[arg(long, value_name = "NAME=PATH", value_parser = setting)]
    pub region: Vec<(String, String)>,
    /// Keep the home disk of a cache in this file or block device
    #[arg(long, value_name = "PATH")]
    pub disk: Option<PathBuf>,
    /// Allocate space in the file system as data are written, not all at once: the store may be larger than the free
    /// space, and writes are refused while the file system is full
    #[arg(long)]
    pub sparse: bool,
    /// Overwrite existing data in the files and block devices. Those in use (mounted, served, locked) are still refused
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Where clients connect; by default the Unix socket `nbd.sock` in the store's directory
    #[arg(long, value_name = "unix:PATH|tcp:HOST:PORT")]
    pub listen: Option<Address>,
    /// Also show the device as this file, by FUSE: for `mkfs.ext4 FILE` and `mount -o loop FILE`. The file must be
    /// empty; if it is missing, it is created, and removed at the end
    #[arg(long, value_name = "FILE")]
    pub fuse: Option<PathBuf>,
    /// Also make the device a disk of this machine, `/dev/ublkbN`, by ublk: by default with the first number N that is free. Needs
    /// root, Linux 6.5, the driver `ublk_drv`, and a program that was compiled with the feature `ublk`
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "any")]
    pub ublk: Option<Number>,
    /// Also serve the store as a virtio disk of a virtual machine: its VMM connects to this Unix socket
    /// (vhost-user-blk)
    #[arg(long, value_name = "SOCKET")]
    pub vhost_user: Option<PathBuf>,
    /// Allow addresses that other machines can reach, if every client must use TLS
    #[arg(long)]
    pub remote: bool,
    /// With `--remote`: let other machines connect without encryption or authentication
    #[arg(long, requires = "remote")]
    pub plaintext: bool,
    /// Refuse writes, and change no file of the store
    #[arg(long)]
    pub read_only: bool,
    /// The store was moved to another file system or restored from a backup, and the original no longer exists: take
    /// over its files outside its directory
    #[arg(long, conflicts_with = "read_only")]
    pub moved: bool,
    /// Export name, in addition to the empty name
    #[arg(long, value_name = "NAME", default_value = "", value_parser = export_name)]
    pub export: String,
    /// Maximum number of connected clients
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = whole(1..=u16::MAX))]
    pub connections: u16,
    /// Maximum number of connected clients from one TCP address; by default half of `--connections`
    #[arg(long, value_name = "N", value_parser = whole(1..=u16::MAX))]
    pub connections_per_address: Option<u16>,
    /// Memory for all connections together, 96MiB at least
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = memory)]
    pub memory: ByteSize,
    /// Disconnect a client that sends no request for this time; 0 never disconnects
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = whole(0..=u32::MAX))]
    pub idle_timeout: u32,
    /// Read and write the files past the page cache (`O_DIRECT`)
    #[arg(long)]
    pub direct: bool,
    /// Poll the socket of a busy client for this time before sleeping; 0 never polls
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 100, value_parser = whole(0..=u32::MAX))]
    pub poll: u32,
    /// Delay each reply until the modelled device would have completed the request; with FACTOR, the modelled times are
    /// multiplied by FACTOR
    #[arg(long, value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = pace)]
    pub pace: Option<f64>,
    /// Serve figures as OpenMetrics over HTTP at this address
    #[arg(long, value_name = "unix:PATH|tcp:HOST:PORT")]
    pub stats: Option<Address>,
    /// Level of the log on the standard error; `info` adds connections, checkpoints, and commits that took over a
    /// second
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub log: LogLevel,
    /// Certificate chain of the server (PEM): every client must use TLS
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "TLS options")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "TLS options")]
    pub tls_key: Option<PathBuf>,
    /// Clients must have a certificate of one of these authorities (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "TLS options")]
    pub tls_clients: Option<PathBuf>,
    /// Run a command once clients can connect, with `$uri` set, `$fuse` to the file of `--fuse`, and `$ublk` to the disk of
    /// `--ublk`. The server stops when the command ends; the exit status is 1 if the command failed
    #[arg(long, value_name = "COMMAND")]
    pub run: Option<String>,
}

/// Lowest level that is logged.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

#[derive(Debug, Args)]
pub struct StatArgs {
    /// Directory of the store, served or not
    pub store: PathBuf,
    #[command(flatten)]
    pub json: JsonArgs,
}

#[derive(Debug, Args)]
pub struct CopyArgs {
    /// Directory of the store to be copied; its files are not changed
    pub old: PathBuf,
    /// Directory of the new store; created if it is missing
    pub new: PathBuf,
    /// Scheme of the new store; by default the scheme of the old store
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Capacity of the new store, at least that of the old store; by default the same
    #[arg(long, value_name = "SIZE", value_parser = capacity)]
    pub capacity: Option<ByteSize>,
    /// Device of the new store, as for `create`. By default the device of the old store, or `bare-dies` if a scheme, a
    /// capacity or a setting is given
    #[arg(long, value_name = "NAME|FILE")]
    pub device: Option<String>,
    /// Set a parameter of the scheme, or a field of the device, as for `create` (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Read the old store with the map of its data that was written when it was closed, not with its scheme. This is
    /// the default only if the scheme cannot read the store, such as a scheme of an unknown version
    #[arg(long)]
    pub by_map: bool,
}

#[derive(Debug, Args)]
pub struct GrowArgs {
    /// Directory of the store, which must not be served
    pub store: PathBuf,
    /// Capacity of the larger store; all regions grow in proportion
    #[arg(long, value_name = "SIZE", value_parser = capacity)]
    pub capacity: ByteSize,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Directory of the store, which must not be served
    pub store: PathBuf,
    /// Write the data of the store to this image. If the store cannot be opened, every page is searched, and the newest
    /// intact version of each sector is written
    #[arg(long, value_name = "IMAGE")]
    pub rescue: Option<PathBuf>,
    /// File of a region outside of the store's directory, for a rescue whose superblock cannot name it; give the files of
    /// all regions then (repeatable)
    #[arg(long, value_name = "PATH", requires = "rescue")]
    pub region: Vec<PathBuf>,
    /// The same for the file of the home disk
    #[arg(long, value_name = "PATH", requires = "rescue")]
    pub disk: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArgs,
}

#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Also show every page
    #[arg(long)]
    pub pages: bool,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub what: Benchmark,
}

#[derive(Debug, Subcommand)]
pub enum Benchmark {
    /// Requests per second over NBD, compared with nbdkit, in memory and in files: needs fio with its nbd engine,
    /// nbdkit, taskset
    Nbd(BenchNbdArgs),
    /// Requests per second through a file of `serve --fuse`, compared with nbdfuse over NBD: needs fio, nbdfuse, taskset
    Fuse(MeasureArgs),
    /// Requests per second of a virtual machine's disk of `serve --vhost-user`, compared with a file behind
    /// qemu-storage-daemon: needs qemu-storage-daemon
    VhostUser(MeasureArgs),
    /// Requests per second of a disk of `serve --ublk`, compared with a loop device: needs fio, losetup, taskset, and all that
    /// `serve --ublk` needs
    Ublk(MeasureArgs),
}

#[derive(Debug, Args)]
pub struct BenchNbdArgs {
    #[command(flatten)]
    pub measure: MeasureArgs,
    /// Also measure a full store of each of these schemes, after random writes; `all` for every scheme
    #[arg(long, value_name = "A,B,...|all", value_delimiter = ',')]
    pub schemes: Vec<String>,
}

/// Options of a measurement.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// Directory for stores and images, about eight times `--size`; by default the directory of temporary files
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Size of the range that clients read and write
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub size: ByteSize,
    /// Scheme of the stores
    #[arg(long, value_name = "NAME", default_value = "pagemap")]
    pub scheme: String,
    /// Rounds in which servers take turns
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole(1..=u16::MAX))]
    pub rounds: u16,
    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds)]
    pub seconds: f64,
    #[command(flatten)]
    pub json: JsonArgs,
}

impl MeasureArgs {
    /// The size in whole mebibytes, in bytes.
    pub fn bytes(&self) -> u64 {
        self.size.0.checked_next_multiple_of(1 << 20).unwrap_or(u64::MAX)
    }
}

fn capacity(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse()?;
    if size.0.is_multiple_of(SECTOR_BYTES) {
        return Ok(size);
    }
    let next =
        size.0.checked_next_multiple_of(SECTOR_BYTES).map_or_else(String::new, |next| format!(", such as {next}"));
    Err(format!("a capacity is a multiple of {SECTOR_BYTES} bytes{next}"))
}

fn export_name(text: &str) -> Result<String, String> {
    match text.len() {
        0..=EXPORT_NAME_BYTES_MAX => Ok(text.to_owned()),
        bytes => Err(format!("it has {bytes} bytes, and a name has at most {EXPORT_NAME_BYTES_MAX}")),
    }
}

fn pace(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (1e-3..=1e3).contains(factor));
    factor.ok_or_else(|| "a factor is a number from 0.001 to 1000".to_owned())
}

fn memory(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse()?;
    if size.0 < MEMORY_BYTES_MIN as u64 {
        return Err("connections need at least 96MiB".into());
    }
    Ok(size)
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds from 0.01 to 3600".to_owned())
}
