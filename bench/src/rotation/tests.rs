//! Which repetitions count, and what their ratios are.

use super::*;

const RULES: Rules = Rules {
    yardstick: Yardstick::Ends,
    twin_slack: 0.03,
};
const RHYTHM: Rhythm = Rhythm {
    window: Duration::from_millis(100),
    rounds: 1,
    repetitions: 2,
    spare: 1,
};

/// A sample of a hundred operations that took the proxy this many milliseconds.
fn sample(proxy: u64) -> Sample {
    let window = Duration::from_millis(100);
    Sample {
        proxy: Duration::from_millis(proxy),
        beside: Duration::from_millis(10),
        client: Duration::from_millis(30),
        backend: Duration::from_millis(20),
        window: Window {
            done: 100.0,
            wanted: Some(100.0),
            errors: 0,
            length: window,
            took: window,
        },
    }
}

#[test]
fn a_machine_at_half_speed_changes_no_ratio() {
    let fast = sample(20);
    let mut slow = sample(28);
    (slow.client, slow.backend) = (slow.client * 2, slow.backend * 2);
    assert!((slow.ratio(&fast, RULES) - 0.7).abs() < 1e-9);
}

#[test]
fn what_stands_beside_a_proxy_is_counted_apart() {
    let (ours, theirs) = (
        sample(20),
        Sample {
            beside: Duration::ZERO,
            ..sample(60)
        },
    );
    assert!((ours.ratio(&theirs, RULES) - 20.0 / 60.0).abs() < 1e-9);
    assert!((ours.ratio_with_beside(&theirs, RULES) - 0.5).abs() < 1e-9);
}

#[test]
fn a_repetition_with_an_error_does_not_count() {
    let mut broken = sample(20);
    broken.window.errors = 1;
    assert_eq!(
        judge(&[vec![sample(20), broken]], false, RULES),
        Err(Invalid::Errors(1))
    );
}

#[test]
fn twins_that_differ_make_a_repetition_noisy() {
    let rounds = [vec![sample(20), sample(22)]];
    assert!(matches!(
        judge(&rounds, true, RULES),
        Err(Invalid::Twins(_))
    ));
    assert_eq!(judge(&rounds, false, RULES), Ok(()));
}

#[test]
fn a_rate_that_was_not_reached_does_not_count() {
    let mut late = sample(20);
    late.window.took = Duration::from_millis(200);
    assert_eq!(
        judge(&[vec![late, late]], true, RULES),
        Err(Invalid::TooSlow(0.5))
    );
}

#[test]
fn a_refused_repetition_is_made_again_while_there_are_spare_ones() {
    let mut outcomes = [true, false, true].into_iter();
    let (rounds, refused) = repeat(RHYTHM, || {
        let round = vec![vec![sample(20)]];
        let good = outcomes.next().unwrap();
        Ok(if good {
            Ok(round)
        } else {
            Err((Invalid::Errors(1), round))
        })
    })
    .unwrap();
    assert_eq!((rounds.len(), refused), (2, None));
}

#[test]
fn when_no_spare_one_is_left_the_refused_one_is_used_and_said_so() {
    let always = || Ok(Err((Invalid::Errors(3), vec![vec![sample(20)]])));
    let (rounds, refused) = repeat(RHYTHM, always).unwrap();
    assert_eq!((rounds.len(), refused), (1, Some(Invalid::Errors(3))));
}

#[test]
fn the_first_round_is_thrown_away_and_samples_keep_their_proxy() {
    let mut calls = 0;
    let rounds = rounds(2, 3, |number| {
        calls += 1;
        sample(u64::try_from(number).unwrap())
    });
    assert_eq!((calls, rounds.len()), (9, 2));
    assert_eq!(rounds[0][2].proxy, Duration::from_millis(2));
}
