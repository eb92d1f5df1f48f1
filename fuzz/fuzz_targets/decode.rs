//! Passes arbitrary bytes to every codec. The body is in the library, where a bounded run of it is a test.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| longwire_towers::testing::decode(data));
