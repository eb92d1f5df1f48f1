mod hostile;
mod laws;
mod packets;
mod parts;
mod progress;
mod scene;
mod stories;
