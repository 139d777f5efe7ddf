// First script in the page: records errors.
window.wrongs = [];
window.addEventListener("error", event => wrongs.push(`error: ${event.message}`));
window.addEventListener("unhandledrejection", event => wrongs.push(`rejection: ${event.reason}`));
document.addEventListener("securitypolicyviolation", event => wrongs.push(`request: ${event.blockedURI}`));
for (const level of ["error", "warn"]) {
  const told = console[level];
  console[level] = (...words) => { wrongs.push(`console.${level}: ${words.join(" ")}`); told.apply(console, words); };
}
