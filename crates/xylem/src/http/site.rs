//! Where the files come from. A site finds a file by the names that lead to it, and may take new ones; a directory is
//! the usual one. No name leads out of the directory, and that is the kernel's promise (openat2(2), RESOLVE_BENEATH),
//! not a comparison of strings that a symbolic link made in between would defeat.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The most bytes one upload to a directory may have.
pub const UPLOAD_BYTES_MAX: u64 = 8 << 30;

/// A file that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its bytes; they are read at their offsets, so that several connections may share it.
    pub file: Arc<File>,
    /// How many there are.
    pub length: u64,
    /// What they are, as HTTP says it.
    pub content_type: &'static str,
    /// When they last changed, if that is known.
    pub modified: Option<SystemTime>,
}

/// Why a site does not do what it is asked to.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such file.
    NotFound,
    /// There is, or might be, but not for everybody.
    Forbidden,
    /// The upload is longer than the site takes.
    TooLong,
    /// The file could not be opened or made, through no fault of the peer's.
    Broken(io::Error),
}

/// Where files come from.
pub trait Site: Send + Sync {
    /// The file that `path` leads to; no name in it is empty, `.` or `..` or has a slash in it.
    ///
    /// # Errors
    /// See [`Refusal`].
    fn find(&self, path: &[String]) -> Result<Found, Refusal>;

    /// Whether it takes files at all.
    fn takes_uploads(&self) -> bool {
        false
    }

    /// Takes a file of `length` bytes that will stand at `path` once it is complete.
    ///
    /// # Errors
    /// See [`Refusal`].
    fn receive(&self, _path: &[String], _length: u64) -> Result<Box<dyn Upload>, Refusal> {
        Err(Refusal::Forbidden)
    }
}

/// A file on its way in. Dropped before it is finished, it leaves nothing.
pub trait Upload: Send {
    /// The next bytes.
    ///
    /// # Errors
    /// The disk's.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// It is complete: it takes the place of what stood at its path.
    ///
    /// # Errors
    /// The disk's.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// The files below a directory.
pub struct Directory {
    root: OwnedFd,
    uploads: bool,
}

impl Directory {
    /// The files below `root`, and new ones put there if `uploads` says so.
    ///
    /// # Errors
    /// It is no directory, or may not be read.
    pub fn open(root: impl AsRef<Path>, uploads: bool) -> io::Result<Directory> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, root.as_ref(), flags, Mode::empty())?;
        Ok(Directory { root, uploads })
    }

    fn below(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Refusal> {
        let flags = flags | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let path = if path.is_empty() { "." } else { path };
        rustix::fs::openat2(&self.root, path, flags, Mode::empty(), beneath).map_err(refusal)
    }
}

fn refusal(error: Errno) -> Refusal {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::ISDIR | Errno::NXIO => Refusal::NotFound,
        // XDEV: a symbolic link led out of the directory.
        Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP | Errno::ROFS => Refusal::Forbidden,
        error => Refusal::Broken(error.into()),
    }
}

impl Site for Directory {
    fn find(&self, path: &[String]) -> Result<Found, Refusal> {
        // No waiting for a FIFO's other end.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let mut name = path.join("/");
        let mut file = File::from(self.below(&name, flags)?);
        let mut metadata = file.metadata().map_err(Refusal::Broken)?;
        if metadata.is_dir() {
            name = if name.is_empty() { "index.html".into() } else { name + "/index.html" };
            file = File::from(self.below(&name, flags)?);
            metadata = file.metadata().map_err(Refusal::Broken)?;
        }
        if !metadata.is_file() {
            return Err(Refusal::NotFound);
        }
        Ok(Found {
            file: Arc::new(file),
            length: metadata.len(),
            content_type: content_type(&name),
            modified: metadata.modified().ok(),
        })
    }

    fn takes_uploads(&self) -> bool {
        self.uploads
    }

    fn receive(&self, path: &[String], length: u64) -> Result<Box<dyn Upload>, Refusal> {
        let Some((name, parents)) = path.split_last() else { return Err(Refusal::Forbidden) };
        if !self.uploads {
            return Err(Refusal::Forbidden);
        }
        if length > UPLOAD_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        let directory = self.below(&parents.join("/"), OFlags::DIRECTORY | OFlags::PATH)?;
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let partial = format!(".xylem-upload-{}-{number}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o644);
        let file = File::from(rustix::fs::openat(&directory, &partial, flags, mode).map_err(refusal)?);
        Ok(Box::new(Incoming { directory, partial: Some(partial), name: name.clone(), file }))
    }
}

/// A file on its way into a directory: under another name until it is complete.
struct Incoming {
    directory: OwnedFd,
    partial: Option<String>,
    name: String,
    file: File,
}

impl Upload for Incoming {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            rustix::fs::renameat(&self.directory, partial, &self.directory, &self.name)?;
        }
        // What has its own name now is not taken back.
        self.partial = None;
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(partial) = self.partial.take() {
            // If that fails the disk has other worries.
            let _ = rustix::fs::unlinkat(&self.directory, &partial, AtFlags::empty());
        }
    }
}

/// What a file is, by the end of its name.
fn content_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" | "md" | "log" | "graph" => "text/plain; charset=utf-8",
        "css" => "text/css",
        "js" => "text/javascript",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Vec<String> {
        path.split('/').filter(|name| !name.is_empty()).map(String::from).collect()
    }

    #[test]
    fn nothing_outside_of_the_directory_is_found_or_written() {
        let outer = tempfile::tempdir().expect("a directory");
        let root = outer.path().join("site");
        std::fs::create_dir_all(root.join("sub")).expect("a directory");
        std::fs::write(outer.path().join("secret"), "s").expect("a file");
        std::fs::write(root.join("sub/index.html"), "<p>").expect("a file");
        std::os::unix::fs::symlink("../secret", root.join("leak")).expect("a link");
        std::os::unix::fs::symlink("sub/index.html", root.join("inside")).expect("a link");
        std::os::unix::fs::symlink("..", root.join("up")).expect("a link");
        let site = Directory::open(&root, true).expect("it is there");
        assert_eq!(site.find(&names("sub")).expect("its index").length, 3);
        assert_eq!(site.find(&names("inside")).expect("a link within").length, 3);
        for path in ["leak", "up/secret", "up/site/sub/index.html"] {
            assert!(matches!(site.find(&names(path)), Err(Refusal::Forbidden)), "{path}");
        }
        for path in ["nothing", "sub/index.html/x", ""] {
            assert!(matches!(site.find(&names(path)), Err(Refusal::NotFound)), "{path}");
        }
        assert!(matches!(site.receive(&names("up/new"), 1), Err(Refusal::Forbidden)));
        assert!(matches!(site.receive(&names("new"), UPLOAD_BYTES_MAX + 1), Err(Refusal::TooLong)));
        // Through a link that leads out, the link is replaced and not what it leads to.
        let mut upload = site.receive(&names("leak"), 3).expect("the directory takes files");
        upload.append(b"new").expect("the disk has room");
        upload.finish().expect("it is renamed");
        assert_eq!(std::fs::read(outer.path().join("secret")).expect("it is there"), b"s");
        assert_eq!(std::fs::read(root.join("leak")).expect("it is there"), b"new");
    }

    #[test]
    fn an_upload_that_is_not_finished_leaves_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let site = Directory::open(root.path(), true).expect("it is there");
        let mut upload = site.receive(&names("half"), 10).expect("the directory takes files");
        upload.append(b"half").expect("the disk has room");
        assert_eq!(std::fs::read_dir(root.path()).expect("it is there").count(), 1);
        drop(upload);
        assert_eq!(std::fs::read_dir(root.path()).expect("it is there").count(), 0);
        let closed = Directory::open(root.path(), false).expect("it is there");
        assert!(matches!(closed.receive(&names("x"), 1), Err(Refusal::Forbidden)) && !closed.takes_uploads());
    }
}
