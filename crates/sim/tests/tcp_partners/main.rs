//! TCP against other implementations: `smoltcp` in virtual time, and the Linux kernel over a TUN device.

mod kernel;
mod long_line;
mod near;
mod smoltcp;
