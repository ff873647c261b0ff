//! The cube root that CUBIC needs, in whole numbers: the simulated path knows no floating point.

/// The largest whole number whose cube is at most `number`, by Newton's method from above.
pub(super) fn cube_root(number: u128) -> u64 {
    if number == 0 {
        return 0;
    }
    // A power of two that is at least the root: 2^ceil(bits / 3). From there every step goes down until it arrives.
    let bits = 128 - number.leading_zeros();
    let mut guess = 1u128 << bits.div_ceil(3);
    loop {
        let next = (2 * guess + number / (guess * guess)) / 3;
        if next >= guess {
            // The root of a number below 2^128 is below 2^43.
            return guess as u64;
        }
        guess = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_and_large_roots() {
        assert_eq!([0, 1, 7, 8, 26, 27, 28].map(cube_root), [0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(cube_root(u128::MAX), 6_981_463_658_331);
    }

    proptest! {
        /// By definition, in exact arithmetic: root^3 <= number < (root + 1)^3, on both sides of every cube.
        #[test]
        fn a_root_is_exact(root in 1u128..6_981_463_658_331, beyond: u128) {
            let cube = root * root * root;
            prop_assert_eq!(u128::from(cube_root(cube)), root);
            prop_assert_eq!(u128::from(cube_root(cube - 1)), root - 1);
            let between = cube + beyond % (3 * root * root + 3 * root + 1);
            prop_assert_eq!(u128::from(cube_root(between)), root);
        }
    }
}
