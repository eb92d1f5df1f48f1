mod hostile;
mod laws;
mod packets;
mod progress;
mod scene;
mod stories;
mod streams;
