//! Faults on demand are felt by those they are for, and by nobody afterwards.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use steward_lab::{HostId, Lab, Nudge, Unit, dns::Mood, faults::Allowed, poll};

use crate::shared::{PATIENCE, lab_alone, until_says};

#[tokio::test]
async fn a_partition_between_two_hosts_is_seen_and_heals() {
    let lab = lab_alone().await;
    let (client, mgmt) = (HostId::Client, HostId::Mgmt);
    let api = SocketAddr::new(mgmt.address().into(), 6443);
    assert!(reaches(&lab, client, api).await);
    let cut = lab.cut(client, mgmt).unwrap();
    assert!(!reaches(&lab, client, api).await);
    // Only these two: everybody else still talks to both.
    assert!(reaches(&lab, HostId::Worker(1), api).await);
    assert!(
        reaches(
            &lab,
            client,
            SocketAddr::new(HostId::Router.address().into(), 53)
        )
        .await
    );
    cut.heal().unwrap();
    assert!(reaches(&lab, client, api).await);

    // Hosts on one network, whose traffic is not routed.
    let (one, other) = (HostId::Worker(1), lab.worker(2).unwrap());
    let command = ["socat", "TCP-LISTEN:7000,fork,reuseaddr", "SYSTEM:true"];
    let command = command.map(String::from).into();
    let listener = Unit {
        name: "listener".into(),
        command,
        restart: true,
        when: None,
    };
    other.start(listener).unwrap();
    let listener = SocketAddr::new(other.address(), 7000);
    lab.wait_for("the listener", PATIENCE, async || {
        if reaches(&lab, one, listener).await {
            Ok(())
        } else {
            Err("closed".into())
        }
    })
    .await
    .unwrap();
    let cut = lab.cut(one, other.id()).unwrap();
    assert!(!reaches(&lab, one, listener).await);
    drop(cut);
    assert!(reaches(&lab, one, listener).await);
    other.stop("listener").unwrap();
}

#[tokio::test]
async fn a_fenced_in_host_reaches_one_address_and_port_only() {
    let lab = lab_alone().await;
    let worker = HostId::Worker(2);
    let api = SocketAddr::new(HostId::Mgmt.address().into(), 6443);
    let etcd = SocketAddr::new(HostId::Mgmt.address().into(), 2379);
    let names = SocketAddr::new(worker.network().gateway().into(), 53);
    assert!(reaches(&lab, worker, etcd).await);
    let allowed = Allowed {
        tcp: vec![api],
        names: false,
    };
    let fence = lab.fence_in(worker, &allowed).unwrap();
    assert!(reaches(&lab, worker, api).await);
    assert!(!reaches(&lab, worker, etcd).await);
    assert!(!reaches(&lab, worker, names).await);
    drop(fence);
    assert!(reaches(&lab, worker, names).await);
}

#[tokio::test]
async fn traffic_can_be_delayed_and_lost() {
    let lab = lab_alone().await;
    let (client, mgmt) = (HostId::Client, HostId::Mgmt);
    let api = SocketAddr::new(mgmt.address().into(), 6443);
    let by = Duration::from_millis(400);
    let delay = lab.delay(client, mgmt, by).unwrap();
    let start = Instant::now();
    assert!(reaches(&lab, client, api).await);
    assert!(
        start.elapsed() >= 2 * by,
        "a handshake takes a round trip: {:?}",
        start.elapsed()
    );
    delay.heal().unwrap();

    let loss = lab.lose(client, mgmt, 100).unwrap();
    assert!(!reaches(&lab, client, api).await);
    drop(loss);
    assert!(reaches(&lab, client, api).await);
    drop(lab.throttle(client, mgmt, 100).unwrap());
    let error = lab
        .delay(HostId::Worker(1), HostId::Worker(2), by)
        .unwrap_err()
        .to_string();
    assert!(error.contains("one network"), "{error}");
}

#[tokio::test]
async fn the_name_server_answers_what_it_is_told_and_fails_when_told() {
    let lab = lab_alone().await;
    lab.dns_set("*.Names.Example.com", Ipv4Addr::new(10, 40, 0, 77))
        .unwrap();
    let words = ["getent", "ahostsv4", "t1.names.example.com"];
    let client = lab.client_host();
    until_says(&lab, &client, &words, "10.40.0.77").await;
    let mgmt = client.run(&["getent", "ahostsv4", "mgmt"]).await.unwrap();
    assert!(mgmt.contains("10.10.0.2"), "{mgmt}");
    lab.dns_mood(Mood::Fails).unwrap();
    let failed = client.exec(&words).await;
    lab.dns_mood(Mood::Answers).unwrap();
    assert!(!failed.unwrap().status.success());
    until_says(&lab, &client, &words, "10.40.0.77").await;
    let error = lab.dns_set("not a name", Ipv4Addr::LOCALHOST).unwrap_err();
    assert_eq!(error.exit_code(), 2);
}

#[tokio::test]
async fn a_killed_program_comes_back_and_a_frozen_one_does_nothing() {
    let lab = lab_alone().await;
    let router = lab.router();
    let pid = || {
        router
            .units()
            .unwrap()
            .into_iter()
            .find(|u| u.name == "dns")
            .unwrap()
            .pid
    };
    let before = pid().unwrap();
    router.nudge("dns", Nudge::Kill).unwrap();
    poll(PATIENCE, async || {
        if pid().is_some_and(|now| now != before) {
            Ok(())
        } else {
            Err(())
        }
    })
    .await
    .unwrap();
    let frozen = lab.worker(1).unwrap();
    frozen.nudge("containerd", Nudge::Freeze).unwrap();
    let words = ["timeout", "2", "ctr", "--namespace", "k8s.io", "version"];
    let stuck = frozen.exec(&words).await.unwrap();
    frozen.nudge("containerd", Nudge::Thaw).unwrap();
    assert!(!stuck.status.success());
    until_says(&lab, &frozen, &words, "Server:").await;
    // In pods, too.
    assert_eq!(lab.mgmt().nudge_all("coredns", Nudge::Kill), 1);
    let cluster = lab.cluster().unwrap();
    cluster
        .wait_deployment("kube-system", "coredns", PATIENCE)
        .await
        .unwrap();
    let error = router
        .nudge("nothing", Nudge::Kill)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no program nothing"), "{error}");
}

#[tokio::test]
async fn a_full_disk_stops_who_writes_there_and_nobody_else() {
    let lab = lab_alone().await;
    let (id, folder) = (HostId::Worker(2), "/var/lib/etcd");
    let worker = lab.worker(2).unwrap();
    let refused = lab.fill_disk(id, folder).unwrap_err().to_string();
    assert!(refused.contains("the machine's disk"), "{refused}");
    let writes = format!("while echo line >> {folder}/lines; do sleep 0.1; done");
    worker.start(unit("writer", &writes)).unwrap();
    let lines = format!("{folder}/lines");
    let holds = ["sh", "-c", &format!("test -s {lines} && echo yes")];
    until_says(&lab, &worker, &holds, "yes").await;
    lab.small_disk(id, folder, "writer", 4).unwrap();
    let before = worker.run(&["cat", &lines]).await.unwrap();
    assert!(before.starts_with("line"), "what was there has come along");

    let full = lab.fill_disk(id, folder).unwrap();
    lab.wait_for("the writer to fail", PATIENCE, async || {
        let units = worker.units().map_err(|e| e.chain())?;
        let end = units.into_iter().find(|u| u.name == "writer");
        match end.and_then(|u| u.last_end) {
            Some(end) if end.starts_with("exit code") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
    worker
        .script("echo fine > /var/lib/cni/other && rm /var/lib/cni/other")
        .await
        .unwrap();
    full.heal().unwrap();
    let size = worker.run(&["cat", &lines]).await.unwrap().len();
    let grew = [
        "sh",
        "-c",
        &format!("test $(stat -c %s {lines}) -gt {size} && echo yes"),
    ];
    until_says(&lab, &worker, &grew, "yes").await;
    worker.stop("writer").unwrap();
}

#[tokio::test]
async fn a_slow_disk_is_slow_for_the_programs_of_one_host() {
    let lab = lab_alone().await;
    let slow = lab.slow_disk(HostId::Worker(2), 4).unwrap();
    // Sixteen writes, each waited for: at four a second, that is seconds, on the fastest disk.
    let took = write_sixteen_times(&lab, "slow").await;
    assert!(took >= Duration::from_secs(2), "{took:?}");
    slow.heal().unwrap();
    let after = write_sixteen_times(&lab, "fast").await;
    assert!(
        after < took,
        "{after:?} after it was healed, {took:?} before"
    );
}

/// As a program of the host does, and how long it took.
async fn write_sixteen_times(lab: &Lab, name: &str) -> Duration {
    let worker = lab.worker(2).unwrap();
    let file = format!("/var/lib/kubelet/{name}");
    let script = format!(
        "start=$(date +%s%N); dd if=/dev/zero of={file} bs=4k count=16 oflag=dsync; end=$(date +%s%N); rm {file}; echo $((end - start)) > {file}.took"
    );
    let once = Unit {
        restart: false,
        ..unit(name, &script)
    };
    worker.start(once).unwrap();
    let took = format!("{file}.took");
    let nanoseconds = lab
        .wait_for("sixteen writes", PATIENCE, async || {
            let said = worker.run(&["cat", &took]).await.map_err(|e| e.chain())?;
            said.trim().parse().map_err(|_| said)
        })
        .await
        .unwrap();
    worker.run(&["rm", &took]).await.unwrap();
    Duration::from_nanos(nanoseconds)
}

fn unit(name: &str, script: &str) -> Unit {
    Unit {
        name: name.into(),
        command: ["sh", "-c", script].map(String::from).into(),
        restart: true,
        when: None,
    }
}

/// Whether a TCP connection can be made from a host; waits no longer than 3 s.
async fn reaches(lab: &Lab, from: HostId, to: SocketAddr) -> bool {
    let script = format!("timeout 3 bash -c '</dev/tcp/{}/{}'", to.ip(), to.port());
    lab.host(from)
        .unwrap()
        .exec(&["sh", "-c", &script])
        .await
        .unwrap()
        .status
        .success()
}
