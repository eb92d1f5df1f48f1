// Photos made smaller in the browser.

import { Failure } from "./api.js";

/** Longest sides on offer, pixels, with the quality of the JPEG and words for them. */
export const SIZES = [
  ["", "as it is"],
  ["1600", "large, 1600 pixels"],
  ["1024", "medium, 1024 pixels"],
  ["640", "small, 640 pixels"],
  ["320", "tiny, 320 pixels"],
];
const QUALITY = { 1600: 0.8, 1024: 0.75, 640: 0.65, 320: 0.5 };

export function isPhoto(file) {
  return /^image\/(jpeg|png|webp|bmp|avif|heic)$/.test(file.type);
}

/** Returns a JPEG file of a photo whose longer side has at most this many pixels. Place and camera are not in it. */
export async function shrink(file, side) {
  let picture;
  try {
    picture = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    throw new Failure(0, `${file.name} is no photo that this browser can read`, "send it as it is");
  }
  const scale = Math.min(1, side / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  picture.close();
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", QUALITY[side] ?? 0.75));
  if (!blob) throw new Failure(0, `${file.name} could not be made smaller`, "send it as it is");
  return new File([blob], file.name.replace(/\.[^.]*$/, "") + ".jpg", { type: "image/jpeg" });
}
