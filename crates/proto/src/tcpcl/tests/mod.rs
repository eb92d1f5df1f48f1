mod hostile;
mod laws;
mod packets;
mod scene;
mod stories;
mod streams;
