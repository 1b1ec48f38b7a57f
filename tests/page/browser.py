"""A page in headless Chromium: console errors, requests to elsewhere, accessibility, screenshots.

Needs Debian's chromium and the environment of tools/requirements-browser.txt (tools/environment.sh browser).

    browser.py PAGE... [--shots FOLDER] [--quick]
PAGE: a file or an address on this machine. Prints one JSON object per page.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile

WIDTHS = (360, 800, 1440)
SCHEMES = ("light", "dark")


def look(browser, page_address, name, shots, axe, quick):
    """What there is to say about one page, in all widths and schemes (quick: narrow and dark, wide and light)."""
    own = ("data:", "blob:", page_address.split("?")[0].rsplit("/", 1)[0])
    said = {"page": name, "console": [], "outside": [], "serious": [], "wide": []}
    for scheme in SCHEMES:
        for width in WIDTHS:
            if quick and (scheme, width) not in (("dark", 360), ("light", 1440)):
                continue
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            page.on("console", lambda m: m.type in ("error", "warning") and said["console"].append(m.text))
            page.on("pageerror", lambda e: said["console"].append(str(e)))
            page.on("request", lambda r: r.url.startswith(own) or said["outside"].append(r.url))
            page.goto(page_address)
            page.wait_for_selector("h1")
            page.wait_for_timeout(300)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                said["wide"].append(f"{width} px, {scheme}: wider than the window")
            found = axe.run(page).response["violations"]
            said["serious"] += [f"{width} px, {scheme}: {v['id']} {v['nodes'][0]['target']}" for v in found
                                if v["impact"] in ("serious", "critical")]
            if shots:
                page.screenshot(path=shots / f"{name}-{width}-{scheme}.png", full_page=True)
                page.screenshot(path=shots / f"{name}-{width}-{scheme}-top.png")  # what the documents show
            said["text"] = page.inner_text("main")
            said["charts"] = page.locator("figure svg polyline").count()
            said["images"] = page.locator("canvas").count()
            if said["charts"]:
                page.locator(".plot").first.hover()
                said["tip"] = page.locator(".tip").first.inner_text()
            context.close()
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+")
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    a = parser.parse_args()
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    if a.shots:
        a.shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as p, tempfile.TemporaryDirectory() as home:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"],
                                    env={"HOME": home, "PATH": "/usr/bin:/bin"})
        for page in a.pages:
            outside = page.startswith("http")
            address = page if outside else pathlib.Path(page).resolve().as_uri()
            name = "board" if outside else pathlib.Path(page).stem
            print(json.dumps(look(browser, address, name, a.shots, Axe(), a.quick)), flush=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
