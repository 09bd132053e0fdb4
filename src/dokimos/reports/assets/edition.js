// A search field keeps the rows of its section that have all of its words.
all("input[data-filter]").forEach((field) => {
  const rows = all("tbody tr", byId(field.dataset.filter));
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row) => { row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word)); });
  });
});
