//! Turns the clock of one running kubelet.
//!
//! Hosts of a lab share a kernel, and so its clock, and there is no namespace for the time
//! of day. But a program does not ask the kernel what time it is: it calls a function that
//! the kernel has mapped into it, `__vdso_clock_gettime`. In the kubelet of one node this
//! function is written over with one that asks the kernel and adds some seconds. From then
//! on everything this kubelet does happens by that clock: its leases, its certificates, its
//! tokens. Nothing is said for it, and no other program is touched.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use anyhow::{Context, Result, bail, ensure};
use steward_e2e::wait_for;
use steward_lab::Nudge;

use crate::scene::Scene;

impl Scene {
    /// Lets the kubelet of worker-2 be so many seconds ahead; 0 sets it right.
    pub(crate) async fn turn_clock(&self, ahead: i32) -> Result<()> {
        let worker = self.stage.lab.worker(2)?;
        let network = worker.run(&["readlink", "/proc/self/ns/net"]).await?;
        let pid = kubelet_in(network.trim())?;
        // Held still, and not inside the function that is written over.
        wait_for("the kubelet to be elsewhere", 60, async || {
            worker.nudge("kubelet", Nudge::Freeze)?;
            let turned = turn(pid, ahead);
            worker.nudge("kubelet", Nudge::Thaw)?;
            turned
        })
        .await
    }
}

/// The number, as this test sees it, of the kubelet of the host with that network.
fn kubelet_in(network: &str) -> Result<u32> {
    for process in std::fs::read_dir("/proc")? {
        let process = process?.path();
        let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        let its = std::fs::read_link(process.join("ns/net")).unwrap_or_default();
        if name.trim() == "kubelet" && its.as_os_str() == network {
            let number = process.file_name().and_then(|n| n.to_str());
            return Ok(number.context("a process without a number")?.parse()?);
        }
    }
    bail!("no kubelet runs in {network}")
}

fn turn(pid: u32, ahead: i32) -> Result<()> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let line = maps
        .lines()
        .find(|l| l.ends_with("[vdso]"))
        .context("the kubelet has no vdso")?;
    let (from, to) = line
        .split_whitespace()
        .next()
        .and_then(|range| range.split_once('-'))
        .context("its range")?;
    let (from, to) = (u64::from_str_radix(from, 16)?, u64::from_str_radix(to, 16)?);
    let memory = OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))?;
    let mut library = vec![0; usize::try_from(to - from)?];
    memory.read_exact_at(&mut library, from)?;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let said = std::fs::read_to_string(task?.path().join("syscall"))?;
        let at = said.split_whitespace().last().unwrap_or_default();
        // One that has not stopped yet is said to be running, and nowhere.
        let at = u64::from_str_radix(at.trim_start_matches("0x"), 16)
            .with_context(|| format!("a thread says {said:?}"))?;
        ensure!(!(from..to).contains(&at), "a thread is reading the clock");
    }
    let function = symbol(&library, b"__vdso_clock_gettime")?;
    memory.write_all_at(&machine_code(ahead), from + function)?;
    Ok(())
}

/// Asks the kernel for the clock, and adds to the seconds if it is that of the day.
fn machine_code(ahead: i32) -> Vec<u8> {
    let mut code = vec![
        0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228: clock_gettime
        0x0f, 0x05, // syscall
        0x85, 0xff, // test edi, edi: CLOCK_REALTIME is 0
        0x75, 0x07, // jne to the end
        0x48, 0x81, 0x06, // add qword [rsi], …
    ];
    code.extend(ahead.to_le_bytes());
    code.push(0xc3); // ret
    code
}

/// Where a function begins in a library of 64 bits: found by its section of names.
fn symbol(library: &[u8], name: &[u8]) -> Result<u64> {
    const DYNAMIC_SYMBOLS: u64 = 11;
    let number = |at: usize, bytes: usize| -> Result<u64> {
        let found = library.get(at..at + bytes).context("the library ends")?;
        let mut whole = [0; 8];
        whole[..bytes].copy_from_slice(found);
        Ok(u64::from_le_bytes(whole))
    };
    let index = |value: u64| usize::try_from(value).context("too far");
    ensure!(library.starts_with(b"\x7fELF"), "this is no library");
    let (sections, count) = (index(number(0x28, 8)?)?, index(number(0x3c, 2)?)?);
    let section = |at: usize| sections + at * 64;
    for table in (0..count).map(section) {
        if number(table + 4, 4)? != DYNAMIC_SYMBOLS {
            continue;
        }
        let strings = index(number(section(index(number(table + 0x28, 4)?)?) + 0x18, 8)?)?;
        let (begin, size) = (
            index(number(table + 0x18, 8)?)?,
            index(number(table + 0x20, 8)?)?,
        );
        for entry in (begin..begin + size).step_by(24) {
            let at = strings + index(number(entry, 4)?)?;
            let end = at + name.len();
            if library.get(at..end) == Some(name) && library.get(end) == Some(&0) {
                return number(entry + 8, 8);
            }
        }
    }
    bail!("the kernel gives programs no such function")
}
