//! Runs every stateful engine with a script of arbitrary bytes. The body is in the library, where a bounded run of it
//! is a test.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| longwire_towers::testing::converse(data));
