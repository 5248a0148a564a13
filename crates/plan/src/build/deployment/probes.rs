//! Probes: patient at the start, quick to notice readiness, slow to kill.

use k8s_openapi::{
    api::core::v1::{Container, HTTPGetAction, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use steward_api::tenant_control_plane::{ProbeSet, ProbeSettings, Probes};

/// Which program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    ApiServer,
    ControllerManager,
    Scheduler,
}

impl Program {
    fn set(self, probes: &Probes) -> Option<&ProbeSet> {
        match self {
            Self::ApiServer => probes.api_server.as_ref(),
            Self::ControllerManager => probes.controller_manager.as_ref(),
            Self::Scheduler => probes.scheduler.as_ref(),
        }
    }
}

/// A probe over HTTP, or HTTPS.
pub(super) fn http(scheme: &str, port: u16, path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::Int(port.into()),
            scheme: Some(scheme.into()),
            ..HTTPGetAction::default()
        }),
        ..Probe::default()
    }
}

/// Five minutes to start, seen within two seconds.
pub(super) fn startup(probe: Probe) -> Probe {
    Probe {
        period_seconds: Some(2),
        timeout_seconds: Some(5),
        failure_threshold: Some(150),
        ..probe
    }
}

/// Killed only after more than a minute without an answer.
pub(super) fn liveness(probe: Probe) -> Probe {
    Probe {
        period_seconds: Some(10),
        timeout_seconds: Some(15),
        failure_threshold: Some(8),
        ..probe
    }
}

/// Out of rotation after three misses.
pub(super) fn readiness(probe: Probe) -> Probe {
    Probe {
        period_seconds: Some(3),
        timeout_seconds: Some(5),
        failure_threshold: Some(3),
        ..probe
    }
}

/// Puts the user's numbers over ours: those for all components, then those for this one.
pub(super) fn tune(container: &mut Container, probes: Option<&Probes>, program: Program) {
    let Some(probes) = probes else { return };
    let own = program.set(probes);
    let set =
        |probe: &mut Option<Probe>, all: Option<&ProbeSettings>, one: Option<&ProbeSettings>| {
            if let Some(probe) = probe {
                [all, one]
                    .into_iter()
                    .flatten()
                    .for_each(|settings| adjust(probe, settings));
            }
        };
    set(
        &mut container.liveness_probe,
        probes.liveness.as_ref(),
        own.and_then(|own| own.liveness.as_ref()),
    );
    set(
        &mut container.readiness_probe,
        probes.readiness.as_ref(),
        own.and_then(|own| own.readiness.as_ref()),
    );
    set(
        &mut container.startup_probe,
        probes.startup.as_ref(),
        own.and_then(|own| own.startup.as_ref()),
    );
}

fn adjust(probe: &mut Probe, settings: &ProbeSettings) {
    let set = |ours: &mut Option<i32>, theirs: Option<i32>| *ours = theirs.or(*ours);
    set(
        &mut probe.initial_delay_seconds,
        settings.initial_delay_seconds,
    );
    set(&mut probe.timeout_seconds, settings.timeout_seconds);
    set(&mut probe.period_seconds, settings.period_seconds);
    set(&mut probe.success_threshold, settings.success_threshold);
    set(&mut probe.failure_threshold, settings.failure_threshold);
}
