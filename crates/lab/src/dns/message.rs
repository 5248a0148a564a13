//! Questions and answers of the domain name system, as bytes: one question, A
//! records only, which is all that hosts and CoreDNS ask of a zone like ours.

use super::{Mood, Zone};

const HEADER: usize = 12;
const A: u16 = 1;
const IN: u16 = 1;

/// Short: tests change the zone and want to see it.
const SECONDS_TO_LIVE: [u8; 4] = [0, 0, 0, 1];

#[derive(Clone, Copy)]
enum Code {
    Fine = 0,
    ServerFailure = 2,
    NoSuchName = 3,
    NotImplemented = 4,
}

struct Question {
    name: String,
    kind: u16,
    class: u16,
    end: usize,
}

/// The answer to a message, or nothing if it deserves none.
pub(super) fn answer(message: &[u8], zone: &Zone) -> Option<Vec<u8>> {
    let is_answer = message.get(2)? & 0x80 != 0;
    if is_answer || zone.mood == Mood::Silent {
        return None;
    }
    let question = question(message)?;
    if zone.mood == Mood::Fails {
        return Some(reply(message, &question, Code::ServerFailure, None));
    }
    let standard = message[2] & 0x78 == 0;
    if !standard || question.class != IN {
        return Some(reply(message, &question, Code::NotImplemented, None));
    }
    match zone.find(&question.name) {
        Some(address) if question.kind == A => Some(reply(
            message,
            &question,
            Code::Fine,
            Some(address.octets()),
        )),
        Some(_) => Some(reply(message, &question, Code::Fine, None)),
        None => Some(reply(message, &question, Code::NoSuchName, None)),
    }
}

fn question(message: &[u8]) -> Option<Question> {
    let count = u16::from_be_bytes([*message.get(4)?, *message.get(5)?]);
    if count != 1 {
        return None;
    }
    let mut labels = Vec::new();
    let mut at = HEADER;
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        match length {
            0 => break,
            // A question's name is never compressed.
            1..=63 => {
                labels.push(String::from_utf8_lossy(message.get(at..at + length)?).into_owned());
                at += length;
            }
            _ => return None,
        }
    }
    let [kind_high, kind_low, class_high, class_low] = *message.get(at..at + 4)? else {
        return None;
    };
    Some(Question {
        name: labels.join("."),
        kind: u16::from_be_bytes([kind_high, kind_low]),
        class: u16::from_be_bytes([class_high, class_low]),
        end: at + 4,
    })
}

fn reply(message: &[u8], question: &Question, code: Code, address: Option<[u8; 4]>) -> Vec<u8> {
    let recursion_desired = message[2] & 0x01;
    let mut reply = message[..question.end].to_vec();
    // An answer, authoritative, recursion available.
    reply[2] = 0x84 | recursion_desired;
    reply[3] = 0x80 | code as u8;
    reply[6..HEADER].fill(0);
    if let Some(address) = address {
        reply[7] = 1;
        // The name is the one at offset 12; then type A, class IN.
        reply.extend([0xC0, 0x0C, 0, 1, 0, 1]);
        reply.extend(SECONDS_TO_LIVE);
        reply.extend([0, 4]);
        reply.extend(address);
    }
    reply
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn ask(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![0xAB, 0xCD, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend(kind.to_be_bytes());
        message.extend([0, 1]);
        message
    }

    fn zone(mood: Mood) -> Zone {
        let names = [("*.k8s.example.com".to_owned(), Ipv4Addr::new(10, 40, 0, 1))].into();
        Zone { mood, names }
    }

    #[test]
    fn a_wildcard_answers_with_its_address() {
        let answer = answer(&ask("t1.k8s.example.com", A), &zone(Mood::Answers)).unwrap();
        assert_eq!(answer[..4], [0xAB, 0xCD, 0x85, 0x80]);
        assert_eq!(answer[7], 1);
        assert_eq!(answer[answer.len() - 4..], [10, 40, 0, 1]);
    }

    #[test]
    fn a_known_name_without_that_record_is_not_an_unknown_name() {
        let answer = answer(&ask("t1.k8s.example.com", 28), &zone(Mood::Answers)).unwrap();
        assert_eq!((answer[3] & 0x0F, answer[7]), (0, 0));
    }

    #[test]
    fn an_unknown_name_does_not_exist() {
        let answer = answer(&ask("example.org", A), &zone(Mood::Answers)).unwrap();
        assert_eq!(answer[3] & 0x0F, 3);
    }

    #[test]
    fn told_to_fail_it_fails_and_told_to_be_silent_it_is() {
        let question = ask("t1.k8s.example.com", A);
        assert_eq!(answer(&question, &zone(Mood::Fails)).unwrap()[3] & 0x0F, 2);
        assert_eq!(answer(&question, &zone(Mood::Silent)), None);
    }

    #[test]
    fn rubbish_is_not_answered() {
        let whole = ask("a.b", A);
        for length in 0..whole.len() {
            assert_eq!(answer(&whole[..length], &zone(Mood::Answers)), None);
        }
        assert_eq!(answer(&[0xFF; 64], &zone(Mood::Answers)), None);
        let mut compressed = ask("a", A);
        compressed[12] = 0xC0;
        assert_eq!(answer(&compressed, &zone(Mood::Answers)), None);
    }
}
