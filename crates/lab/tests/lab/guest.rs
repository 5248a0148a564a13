//! A guest is a machine of its own: its clock is not ours.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steward_lab::{Guest, Host, progress::Progress};

use crate::shared::{PATIENCE, lab};

/// `CAP_SYS_TIME`: who has it may turn the clock.
const MAY_TURN_THE_CLOCK: u64 = 1 << 25;

#[tokio::test]
async fn a_guest_has_a_clock_of_its_own_and_systemd_to_set_it_right() {
    let lab = lab().await;
    let hour = Duration::from_hours(1);
    let guest = lab.guest(hour, &Progress::stderr()).await.unwrap();
    assert!(ahead(&guest).await > 3000);
    for program in ["linux.uml", "chronyd"] {
        let rights = rights(&lab.router(), program).await;
        assert_eq!(rights & MAY_TURN_THE_CLOCK, 0, "{program}: {rights:x}");
    }

    let output = guest.exec("echo fine; echo bad >&2; exit 3").await.unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stdout, b"fine\n");
    assert_eq!(output.stderr, b"bad\n");

    guest.script("timedatectl set-ntp true").await.unwrap();
    lab.wait_for("the guest's clock to be right", PATIENCE, async || {
        let ahead = ahead(&guest).await;
        (ahead.abs() < 600).then_some(()).ok_or(ahead.to_string())
    })
    .await
    .unwrap();

    drop(guest);
    let running = lab.router().units().unwrap();
    assert!(
        running.iter().all(|unit| unit.name != "guest"),
        "{running:?}"
    );
    lab.wait_for("the guest's end", PATIENCE, async || {
        let found = lab.router().exec(&["pgrep", "linux.uml"]).await.unwrap();
        let none = found.status.code() == Some(1);
        none.then_some(()).ok_or("it runs".to_owned())
    })
    .await
    .unwrap();
}

/// Seconds by which its clock is ahead of this machine's.
async fn ahead(guest: &Guest) -> i64 {
    let theirs = guest.script("date +%s").await.unwrap();
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let theirs: i64 = theirs.trim().parse().unwrap();
    theirs - i64::try_from(ours.as_secs()).unwrap()
}

/// The most that a program on a host may ever be allowed.
async fn rights(host: &Host, program: &str) -> u64 {
    // What starts chrony is a loader, and chrony a word on its line.
    let script = format!("sed -n 's/CapBnd:.//p' /proc/$(pgrep -of {program})/status");
    let found = host.script(&script).await.unwrap();
    u64::from_str_radix(found.trim(), 16).unwrap()
}
