//! Tests of the folder.

mod codec;
