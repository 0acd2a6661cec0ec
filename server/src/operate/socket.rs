//! A socket file, on which the service listens in place of an address: for a proxy on the same machine.

use std::fs::{Permissions, remove_file, set_permissions, symlink_metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;

/// The reasons why a socket file cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process listens on it.
    #[error("cannot listen on {}: another process does; stop it, or name another file", .0.display())]
    InUse(PathBuf),
    /// There is a file of this name, and it is not removed.
    #[error("cannot listen on {}: the file is there and is no socket; name another one", .0.display())]
    NoSocket(PathBuf),
    /// The operating system refuses it.
    #[error("cannot listen on {}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A socket file. It is removed when this value is dropped, unless another process has replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// The device and the number of the file.
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens on a file with these permissions. A file that a killed process has left is replaced.
    ///
    /// # Errors
    /// Fails if another process listens on it, if it is no socket, or if the system refuses it.
    pub fn listen(path: &Path, mode: u32) -> Result<(UnixListener, Self), SocketError> {
        remove_stale(path)?;
        let listen = || -> io::Result<_> {
            // Until the permissions are set, the file is for its owner alone.
            let before = umask(Mode::RWXG | Mode::RWXO);
            let listener = UnixListener::bind(path);
            umask(before);
            let listener = listener?;
            set_permissions(path, Permissions::from_mode(mode))?;
            Ok((listener, identity(path)?))
        };
        let (listener, identity) = listen().map_err(|source| system(path, source))?;
        let path = path.to_owned();
        Ok((listener, Self { path, identity }))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            // Whoever starts next replaces a file that is left.
            let _ = remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Removes a socket that no process listens on.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let found = match symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system(path, error)),
    };
    if !found.file_type().is_socket() {
        return Err(SocketError::NoSocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(SocketError::InUse(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            remove_file(path).map_err(|source| system(path, source))
        }
        Err(error) => Err(system(path, error)),
    }
}

fn system(path: &Path, source: io::Error) -> SocketError {
    SocketError::System {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lexiform-{name}-{}.sock", std::process::id()));
        let _ = remove_file(&path);
        path
    }

    #[test]
    fn a_file_has_its_permissions_and_goes_with_its_owner() {
        let path = path("own");
        let (listener, file) = SocketFile::listen(&path, 0o640).expect("a socket");
        let mode = symlink_metadata(&path).expect("the file").mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(UnixStream::connect(&path).is_ok());
        let second = SocketFile::listen(&path, 0o600);
        assert!(matches!(second, Err(SocketError::InUse(_))), "{second:?}");
        drop((listener, file));
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_has_left_is_replaced_and_nothing_else() {
        let path = path("stale");
        drop(UnixListener::bind(&path).expect("a socket"));
        assert!(path.exists());
        let (_listener, file) = SocketFile::listen(&path, 0o600).expect("a socket");
        remove_file(&path).expect("the file");
        std::fs::write(&path, "of somebody else").expect("a file");
        drop(file);
        assert!(path.exists(), "the file of another was removed");
        let refused = SocketFile::listen(&path, 0o600);
        assert!(matches!(refused, Err(SocketError::NoSocket(_))), "{refused:?}");
        assert!(path.exists());
        remove_file(&path).expect("the file");
    }
}
