//! Processors with more registers than User Mode Linux knows of.
//!
//! It sets its programs' registers in one piece, as long as it knows them to be, and Linux takes only one that is as
//! long as they are: with AMX, whose registers are eight kilobytes, its first program dies of that. A kernel that is
//! refused to read them this way when it starts falls back to the older one, for registers of up to 128 bits. What is in
//! longer ones is lost whenever a program touches a page for the first time, so the libraries that like them most are
//! told that there are none.

use std::{
    collections::BTreeMap, ffi::OsString, fs, io, os::unix::process::CommandExt as _,
    process::Command,
};

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

use crate::Error;

/// As /proc/cpuinfo names the registers in question.
const AMX: &str = "amx_tile";

/// Numbers of the kernel's interface, the same for ever: the call, what it is asked for, and the answer.
const PTRACE: i64 = 101;
const GET_REGISTER_SET: u64 = 0x4204;
const INPUT_OUTPUT_ERROR: u32 = 5;

/// For the C library and for TLS: there is no AVX, nor anything that came after it.
const WITHOUT: [(&str, &str); 2] = [
    (
        "GLIBC_TUNABLES",
        "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX2,-AVX,-BMI2,-RTM,\
         -AVX_Fast_Unaligned_Load,-Prefer_No_VZEROUPPER,-XSAVEC,-XSAVE,-ERMS,-FSRM,-MOVBE",
    ),
    ("OPENSSL_ia32cap", "~0x1000000000000000:0x0"),
];

/// Whether this machine's are too many for a guest.
pub(super) fn too_many() -> bool {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut flags = processors.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| line.split_whitespace().any(|flag| flag == AMX))
}

/// What a guest's kernel is told: variables for its first program, and for all that systemd starts.
pub(super) fn variables() -> impl Iterator<Item = String> {
    let both = |(name, value)| {
        [
            format!("{name}={value}"),
            format!("systemd.setenv={name}={value}"),
        ]
    };
    WITHOUT.into_iter().flat_map(both)
}

/// Becomes a program that can't read registers of any length, nor can those that it starts. Returns only if that failed.
pub(crate) fn run_with_the_older_ones(command: &[OsString]) -> Error {
    let Some((program, words)) = command.split_first() else {
        return Error::Invalid("no program was named".into());
    };
    let refused = filter()
        .map_err(io::Error::other)
        .and_then(|filter| seccompiler::apply_filter(&filter).map_err(io::Error::other));
    match refused {
        Ok(()) => Error::files("run", program)(Command::new(program).args(words).exec()),
        Err(error) => Error::files("filter the system calls of", program)(error),
    }
}

fn filter() -> Result<BpfProgram, BackendError> {
    let asked = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        GET_REGISTER_SET,
    )?;
    let rules = BTreeMap::from([(PTRACE, vec![SeccompRule::new(vec![asked])?])]);
    let refuse = SeccompAction::Errno(INPUT_OUTPUT_ERROR);
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, TargetArch::x86_64)?.try_into()
}
