mod codecs;
mod stories;
