"""The page of `gradsmith annotate`, in a real headless browser."""

import pytest
from browser import Browser, find_browser
from commands import gradsmith, write

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason=(
    "no Chromium on the path: install one (Debian: chromium-headless-shell), or name it in GRADSMITH_BROWSER"))

MODEL = """
    import numpy as np

    def f(x: "f64", r: "f64", n: "i64"):
        label = "a long line <b>with markup</b> & signs: unbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbrokenunbroken"
        total = 0.0
        for t in range(n):
            x = r * x * (1.0 - x)
            weight = 2.0 * t
            total += weight * np.sin(x) + 0.0 * (x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x)
        return total
"""

# Of every visible text: its colour on the colours behind it, by the formula of WCAG 2.
CONTRAST = """
(() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => numbers(color).slice(0, 3).map((v) => v / 255).map(
    (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, k) => s + v * [.2126, .7152, .0722][k], 0);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (numbers(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const one of document.querySelectorAll("body *")) {
    if (![...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !one.checkVisibility()) continue;
    if (["SCRIPT", "STYLE"].includes(one.tagName)) continue;
    const [a, b] = [light(getComputedStyle(one).color), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([one.className, one.textContent.slice(0, 30), ratio]);
  }
  return found;
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(BROWSER, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page_file(own_folder):
    write("model.py", MODEL)
    gradsmith("annotate", "model.py:f", "-t", "vjp", "-o", "page.html")
    return own_folder / "page.html"


def line(number):
    return f"#model\\.py-{number}"


def test_it_loads_nothing_and_says_nothing(browser, page_file):
    page = browser.page(page_file)
    assert "vjp of f in model.py" == page.evaluate("document.title")
    assert [] == page.problems()
    assert page.evaluate("document.querySelectorAll('[src], link, iframe, object').length") == 0


def test_a_click_unfolds_the_generated_lines_of_a_line(browser, page_file):
    page = browser.page(page_file)
    assert not page.has_attribute(f"{line(7)} details", "open")
    page.click(f"{line(7)} summary")
    shown = page.evaluate(f"document.querySelector({line(7)!r}).innerText")
    assert "x_2_tape" not in shown and "1.0 - x" in shown
    assert {"forward", "reverse"} <= set(shown.split())


def test_it_unfolds_without_scripts(browser, page_file):
    page = browser.page(page_file, scripts=False)
    assert not page.has_attribute(f"{line(7)} details", "open")
    page.click(f"{line(7)} summary")
    assert page.has_attribute(f"{line(7)} details", "open")


def test_the_keyboard_is_enough(browser, page_file):
    page = browser.page(page_file)
    page.press("j")
    page.press("j")
    first = page.evaluate("document.activeElement.closest('.line').id")
    page.press("k")
    assert page.evaluate("document.activeElement.closest('.line').id") != first
    page.press("j")
    page.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")
    page.evaluate("document.activeElement.blur()")
    for _ in range(40):
        page.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Unfold all":
            break
    page.press("Enter")
    assert page.evaluate("[...document.querySelectorAll('.source details')].every((one) => one.open)")


def test_a_kind_in_the_legend_dims_the_other_lines(browser, page_file):
    page = browser.page(page_file)
    page.click(".legend [data-kind=saved] button")
    assert "true" == page.evaluate("document.querySelector('.legend [data-kind=saved] button').ariaPressed")
    bright = page.evaluate("[...document.querySelectorAll('.line:not(.dimmed)')].map((one) => one.id)")
    assert ["model.py-6", "model.py-7"] == bright
    page.click(".legend [data-kind=saved] button")
    assert page.evaluate("document.querySelectorAll('.dimmed').length") == 0


def test_a_link_to_the_module_unfolds_it(browser, page_file):
    page = browser.page(page_file)
    page.click(f"{line(7)} summary")
    page.click(f"{line(7)} .generated a")
    assert page.evaluate("document.getElementById('module').open")
    assert page.evaluate("document.querySelector(':target').checkVisibility()")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast(browser, page_file, dark):
    page = browser.page(page_file, dark=dark)
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (shade == "rgb(255, 255, 255)") is not dark
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert [] == page.evaluate(CONTRAST)


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_nothing_is_cut_off(browser, page_file, width):
    page = browser.page(page_file, width=width)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    over = page.evaluate("[...document.querySelectorAll('.code, .chips, .facts li')].filter("
                         "(one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText)")
    assert [] == over


def test_source_is_text_not_markup(browser, page_file):
    page = browser.page(page_file)
    assert page.evaluate("document.querySelectorAll('.source b').length") == 0
    assert "<b>with markup</b> &" in page.evaluate(f"document.querySelector({line(4)!r}).innerText")
