use super::*;

fn wanted() -> Wanted {
    let mut wanted = Wanted::for_domain(
        "Example.com.",
        vec![
            "192.0.2.10".parse().unwrap(),
            "2001:db8::10".parse().unwrap(),
        ],
    );
    wanted.names.push("t1.apps.example.net".to_owned());
    wanted
}

#[test]
fn a_domain_needs_a_zone_for_api_servers_and_one_for_konnectivity() {
    assert_eq!(
        wanted().wildcards,
        ["k8s.example.com", "konnectivity.example.com"]
    );
}

#[test]
fn every_format_has_every_name_and_address_it_can_express() {
    for format in [
        Format::Bind,
        Format::Dnsmasq,
        Format::Coredns,
        Format::Windows,
        Format::Infoblox,
        Format::Cloudflare,
    ] {
        let text = render(&wanted(), format);
        for part in [
            "k8s.example.com",
            "konnectivity.example.com",
            "192.0.2.10",
            "2001:db8::10",
        ] {
            assert!(text.contains(part), "{format:?} lacks {part}:\n{text}");
        }
    }
}

#[test]
fn cloudflare_records_are_never_proxied() {
    let text = render(&wanted(), Format::Cloudflare);
    assert_eq!(text.matches("cf-proxied:false").count(), 6);
}

#[test]
fn sslip_names_use_dashes_so_that_digits_before_the_address_cannot_be_taken_for_it() {
    let text = render(&wanted(), Format::Sslip);
    assert!(text.contains("t1.k8s.192-0-2-10.sslip.io"), "{text}");
}

#[test]
fn a_hosts_file_says_that_it_knows_no_wildcards() {
    let text = render(&wanted(), Format::Hosts);
    assert!(text.contains("no wildcards") && text.contains("192.0.2.10 t1.apps.example.net"));
}
