// Chooses a photo of 2,000 by 1,500 pixels, and returns its size in bytes.
(async () => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2000, 1500];
  const context = canvas.getContext("2d");
  for (let x = 0; x < 2000; x += 20) {
    for (let y = 0; y < 1500; y += 20) {
      context.fillStyle = `rgb(${(x * 7 + y * 3) % 256}, ${(x * y) % 256}, ${(x + y * 11) % 256})`;
      context.fillRect(x, y, 20, 20);
    }
  }
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.9));
  const all = new DataTransfer();
  all.items.add(new File([blob], "photo.jpg", { type: "image/jpeg" }));
  const picker = document.getElementById("files-picker");
  picker.files = all.files;
  picker.dispatchEvent(new Event("change"));
  return blob.size;
})()
