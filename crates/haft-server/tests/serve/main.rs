//! The frame of the HTTP service, driven over real sockets.
