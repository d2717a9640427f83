// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
//! List the executable mappings of a process with the build IDs of their files, by
//! libprocmap's C functions alone: declare what of procmap.h is used.
//!
//!     rustc --edition 2021 list.rs -l procmap

use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uint};

#[repr(C)]
pub struct Procmap {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Options {
    size: usize,
    method: c_int,
    proc: *const c_char,
}

/// It may have more fields in later versions: only ever used by a pointer of the library.
#[repr(C)]
pub struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    inode: u64,
    page_size: u64,
    name: *const c_char,
    name_len: usize,
    flags: u32,
    dev_major: u32,
    dev_minor: u32,
    build_id_size: i32,
    build_id: [u8; 20],
}

const PROCMAP_EXECUTABLE: c_uint = 0x04;
const PROCMAP_WANT_BUILD_ID: c_uint = 0x10000;
const ENOENT: c_int = 2;

extern "C" {
    fn procmap_open_pid(pid: c_int, options: *const Options, procmap: *mut *mut Procmap) -> c_int;
    fn procmap_next(
        procmap: *mut Procmap,
        cursor: *mut u64,
        flags: c_uint,
        mapping: *mut *const Mapping,
    ) -> c_int;
    fn procmap_close(procmap: *mut Procmap);
}

struct Process(*mut Procmap);

impl Drop for Process {
    fn drop(&mut self) {
        unsafe { procmap_close(self.0) }
    }
}

impl Process {
    fn open(pid: i32) -> Result<Process, std::io::Error> {
        let options = Options {
            size: std::mem::size_of::<Options>(),
            method: 0,
            proc: std::ptr::null(),
        };
        let mut handle = std::ptr::null_mut();
        match unsafe { procmap_open_pid(pid, &options, &mut handle) } {
            0 => Ok(Process(handle)),
            err => Err(std::io::Error::from_raw_os_error(-err)),
        }
    }

    /// The mapping that is returned is valid until the next call: it borrows the handle.
    fn next(&mut self, cursor: &mut u64) -> Result<Option<&Mapping>, std::io::Error> {
        let flags = PROCMAP_EXECUTABLE | PROCMAP_WANT_BUILD_ID;
        let mut mapping = std::ptr::null();
        match unsafe { procmap_next(self.0, cursor, flags, &mut mapping) } {
            0 => Ok(Some(unsafe { &*mapping })),
            err if err == -ENOENT => Ok(None),
            err => Err(std::io::Error::from_raw_os_error(-err)),
        }
    }
}

fn list(pid: i32) -> Result<(), std::io::Error> {
    let mut process = Process::open(pid)?;
    let mut cursor = 0;
    while let Some(mapping) = process.next(&mut cursor)? {
        let size = mapping.build_id_size.max(0) as usize;
        let id: String = mapping.build_id[..size].iter().map(|b| format!("{:02x}", b)).collect();
        let name = unsafe { CStr::from_ptr(mapping.name) }.to_string_lossy();
        println!("{:x}-{:x} {:x} {} {}", mapping.start, mapping.end, mapping.offset, id, name);
    }
    Ok(())
}

fn main() {
    let pid = std::env::args().nth(1).and_then(|pid| pid.parse().ok()).unwrap_or(0);
    if let Err(err) = list(pid) {
        eprintln!("{}: {}", pid, err);
        std::process::exit(1);
    }
}
