// Loses each request to delete something, until the function is put back.
window.whole = window.fetch;
window.fetch = (path, options) => (options.method === "DELETE" ? Promise.reject(new TypeError("lost")) : window.whole(path, options));
0;
