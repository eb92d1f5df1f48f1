/root/w/slim1/target-dead/debug/deps/crypto_common-13af8f2147a88ceb.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/crypto-common-0.1.7/src/lib.rs

/root/w/slim1/target-dead/debug/deps/libcrypto_common-13af8f2147a88ceb.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/crypto-common-0.1.7/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/crypto-common-0.1.7/src/lib.rs:
