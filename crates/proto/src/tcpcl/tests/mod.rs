mod laws;
mod streams;
