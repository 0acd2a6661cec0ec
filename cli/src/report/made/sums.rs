//! Sums of files and folders, by which people see whether they have the same data.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// Returns the size and the SHA-256 sum of a file or a folder.
///
/// The sum of a folder is that of what `find * -type f | LC_ALL=C sort | xargs sha256sum` prints inside of
/// it.
pub(super) fn of(path: &Path) -> Result<(u64, String), Failure> {
    if !path.is_dir() {
        return of_file(path);
    }
    let (mut bytes, mut lines) = (0, Sha256::new());
    for file in files(path)? {
        let (size, sum) = of_file(&file)?;
        let name = file.strip_prefix(path).unwrap_or(&file);
        bytes += size;
        lines.update(format!("{sum}  {}\n", name.display()));
    }
    Ok((bytes, hexadecimal(&lines.finalize())))
}

fn of_file(path: &Path) -> Result<(u64, String), Failure> {
    let unreadable = unreadable(path);
    let mut file = File::open(path).map_err(&unreadable)?;
    let mut sum = Sha256::new();
    let bytes = io::copy(&mut file, &mut sum).map_err(unreadable)?;
    Ok((bytes, hexadecimal(&sum.finalize())))
}

/// Returns the files in a folder and below it, in order of their paths. Links are not followed.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        let unreadable = unreadable(&folder);
        for entry in fs::read_dir(&folder).map_err(&unreadable)? {
            let entry = entry.map_err(&unreadable)?;
            let kind = entry.file_type().map_err(&unreadable)?;
            match kind.is_dir() {
                // What a version control system keeps is not data.
                true if entry.file_name() == ".git" => {}
                true => open.push(entry.path()),
                false => files.extend(kind.is_file().then(|| entry.path())),
            }
        }
    }
    files.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(files)
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.to_owned();
    move |source| Failure::Read {
        path: path.clone(),
        source,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_sum_of_what_sha256sum_prints() {
        let folder = std::env::temp_dir().join(format!("lexiform-sums-{}", std::process::id()));
        fs::create_dir_all(folder.join("a")).expect("a folder");
        fs::write(folder.join("a/z"), "abc").expect("written");
        fs::write(folder.join("a.b"), "").expect("written");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(of(&folder.join("a/z")).expect("a sum"), (3, abc.to_owned()));
        let printed = format!("{nothing}  a.b\n{abc}  a/z\n");
        let whole = hexadecimal(&Sha256::digest(printed));
        assert_eq!(of(&folder).expect("a sum"), (3, whole));
        let missing = of(&folder.join("missing")).expect_err("an error").to_string();
        assert!(missing.contains("missing"), "{missing}");
        fs::remove_dir_all(folder).expect("removed");
    }
}
