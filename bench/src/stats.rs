//! Medians and quartiles. Nothing here knows what is being measured.

/// Middle and spread of a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// First quartile.
    pub(crate) low: f64,
    /// Median.
    pub(crate) middle: f64,
    /// Third quartile.
    pub(crate) high: f64,
}

impl Spread {
    /// Of these numbers; `None` when there are none. What is not a number is left out.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            low: quantile(&sorted, 0.25)?,
            middle: quantile(&sorted, 0.5)?,
            high: quantile(&sorted, 0.75)?,
        })
    }

    /// The same with every number multiplied.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self {
            low: self.low * factor,
            middle: self.middle * factor,
            high: self.high * factor,
        }
    }
}

/// The quantile of sorted numbers, interpolated between neighbours.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an index into a few thousand samples"
)]
pub(crate) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = sorted.get(place.floor() as usize)?;
    let above = sorted.get(place.ceil() as usize)?;
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_median() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(
            spread,
            Spread {
                low: 1.75,
                middle: 2.5,
                high: 3.25
            }
        );
    }

    #[test]
    fn one_wild_value_does_not_move_the_median() {
        let spread = Spread::of([1.0, 1.0, 1.0, 1.0, 900.0]).unwrap();
        assert_eq!(
            spread,
            Spread {
                low: 1.0,
                middle: 1.0,
                high: 1.0
            }
        );
    }

    #[test]
    fn scaling_keeps_the_order() {
        let spread = Spread::of([1.0, 2.0, 3.0]).unwrap().scaled(2.0);
        assert_eq!(
            spread,
            Spread {
                low: 3.0,
                middle: 4.0,
                high: 5.0
            }
        );
    }
}
