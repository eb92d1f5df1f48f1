//! TCP against implementations by others: `smoltcp` in virtual time, and the Linux kernel over a TUN device.

mod kernel;
mod near;
mod smoltcp;
