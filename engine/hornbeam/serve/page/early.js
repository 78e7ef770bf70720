// Before anything is drawn: the theme and language that were chosen, and which view the address names.
{
  const root = document.documentElement;
  const theme = localStorage.getItem("hornbeam.theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  root.dataset.view = location.hash.slice(1).split("/")[1] || "ask";
}
