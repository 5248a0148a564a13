//! Secrets with kubeconfigs.

use std::collections::BTreeMap;

use steward_pki::{Authority, Error, Kubeconfig, Pair, Reading, Request, Usage};

use super::{Content, Workshop};
use crate::{
    names::API_SERVER_PORT,
    object::{Object, Stage},
    way::Ways,
};

/// The group whose members are administrators; bound to `cluster-admin` inside the
/// tenant, so it can be taken away, unlike `system:masters`.
pub(crate) const ADMIN_GROUP: &str = "kubeadm:cluster-admins";

/// A user of a kubeconfig.
struct User<'a> {
    name: &'a str,
    group: Option<&'a str>,
}

/// A file of a Secret: its key and the server it names.
struct File<'a> {
    key: &'a str,
    server: &'a str,
}

impl Workshop<'_> {
    /// Kubeconfigs for people, for the operator, and for the programs in the pod.
    pub(crate) fn kubeconfigs(&mut self, ways: &Ways) -> Result<Vec<Object>, Error> {
        let names = self.tenant.names.clone();
        let local = format!("https://127.0.0.1:{API_SERVER_PORT}");
        let mut all = vec![self.admin(ways)?];
        let mut programs = vec![
            (
                names.controller_manager_kubeconfig(),
                "controller-manager.conf",
                "system:kube-controller-manager",
                "the controller manager reaches the API server with it",
            ),
            (
                names.scheduler_kubeconfig(),
                "scheduler.conf",
                "system:kube-scheduler",
                "the scheduler reaches the API server with it",
            ),
        ];
        if self.tenant.spec.addons.konnectivity.is_some() {
            programs.push((
                names.konnectivity_kubeconfig(),
                "konnectivity-server.conf",
                "system:konnectivity-server",
                "the konnectivity server checks its agents' tokens with it",
            ));
        }
        for (name, key, user, because) in programs {
            let user = User {
                name: user,
                group: None,
            };
            let files = [File {
                key,
                server: &local,
            }];
            let data = self.files(&name, &user, &files)?;
            all.push(self.kubeconfig_secret(name, because, data));
        }
        Ok(all)
    }

    fn admin(&mut self, ways: &Ways) -> Result<Object, Error> {
        let names = self.tenant.names.clone();
        let name = names.admin_kubeconfig();
        let outside = ways.active.url();
        let inside = format!(
            "https://{}:{}",
            names.service_host(),
            self.tenant.network.port
        );
        let mut data = BTreeMap::new();
        for (user, group, stem) in [
            ("kubernetes-admin", ADMIN_GROUP, "admin"),
            ("kubernetes-super-admin", "system:masters", "super-admin"),
        ] {
            let user = User {
                name: user,
                group: Some(group),
            };
            let (conf, svc) = (format!("{stem}.conf"), format!("{stem}.svc"));
            let files = [
                File {
                    key: &conf,
                    server: &outside,
                },
                File {
                    key: &svc,
                    server: &inside,
                },
            ];
            data.extend(self.files(&name, &user, &files)?);
        }
        Ok(self.kubeconfig_secret(name, "administrators and the operator use it", data))
    }

    /// Kubeconfigs of one user, which share a certificate. A text that still says what it
    /// should is kept.
    fn files(
        &mut self,
        secret: &str,
        user: &User<'_>,
        files: &[File<'_>],
    ) -> Result<BTreeMap<String, String>, Error> {
        let live = self.live_data(secret).unwrap_or_default();
        let readings: Vec<Option<Reading>> = files
            .iter()
            .map(|file| live.get(file.key).and_then(|text| Reading::parse(text)))
            .collect();
        let found: Option<Pair> = readings
            .iter()
            .flatten()
            .find_map(|reading| reading.client.clone());
        let request = Request {
            common_name: user.name.into(),
            organization: user.group.map(Into::into),
            usage: Usage::Client,
            sans: vec![],
        };
        let authority = Authority::from_pair(self.ca.pair().clone())?;
        let pair = self.keep_or_issue(secret, found, &request, &authority)?;
        let mut data = BTreeMap::new();
        for (file, reading) in files.iter().zip(readings) {
            let wanted = Reading {
                server: file.server.into(),
                authority: authority.pair().certificate.clone(),
                client: Some(pair.clone()),
            };
            let text = match live.get(file.key) {
                Some(text) if reading.as_ref() == Some(&wanted) => text.clone(),
                _ => Kubeconfig {
                    cluster: &self.tenant.names.tenant,
                    server: file.server,
                    authority: &authority.pair().certificate,
                    user: user.name,
                    client: Some(&pair),
                }
                .render()?,
            };
            data.insert(file.key.to_owned(), text);
        }
        Ok(data)
    }

    fn kubeconfig_secret(
        &self,
        name: String,
        because: &'static str,
        data: BTreeMap<String, String>,
    ) -> Object {
        let component = name
            .strip_prefix(&format!("{}-", self.tenant.names.tenant))
            .unwrap_or(&name);
        let component = component.to_owned();
        self.secret(Content {
            name,
            component: &component,
            stage: Stage::Config,
            because,
            type_: "Opaque",
            lifecycle: Some("kubeconfig"),
            data,
        })
    }
}
