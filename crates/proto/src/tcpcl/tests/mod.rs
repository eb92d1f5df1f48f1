mod hostile;
mod laws;
mod scene;
mod stories;
mod streams;
