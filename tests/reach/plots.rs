//! Line charts as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 704.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 308.0;
const COLOURS: [&str; 3] = ["#1f5fa8", "#c2571a", "#2e7d4f"];

/// Both axes begin at 0.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Round values from 0 to `most`, about five.
fn ticks(most: f64) -> Vec<f64> {
    let raw = most / 5.0;
    let power = 10_f64.powf(raw.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| raw <= *step).unwrap_or(raw);
    (0..=(most / step + 1e-9) as usize).map(|tick| tick as f64 * step).collect()
}

fn text(svg: &mut String, (x, y): (f64, f64), more: &str, text: &str) {
    let _infallible = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {more}>{text}</text>");
}

impl Chart {
    pub(crate) fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(1e-9, f64::max);
        let (most_x, most_y) = (most(|it| it.0), most(|it| it.1));
        let across = |x: f64| LEFT + x / most_x * (RIGHT - LEFT);
        let down = |y: f64| BOTTOM - y / most_y * (BOTTOM - TOP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        text(&mut svg, (LEFT, 18.0), "font-size=\"13\"", &self.title);
        for tick in ticks(most_y) {
            let y = down(tick);
            let _infallible =
                writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#dddddd\"/>");
            let label = format!("{}", (tick * 1e6).round() / 1e6);
            text(&mut svg, (LEFT - 6.0, y + 4.0), "text-anchor=\"end\"", &label);
        }
        let middle = "text-anchor=\"middle\"";
        for tick in ticks(most_x) {
            let label = format!("{}", (tick * 1e6).round() / 1e6);
            text(&mut svg, (across(tick), BOTTOM + 16.0), middle, &label);
        }
        text(&mut svg, ((LEFT + RIGHT) / 2.0, BOTTOM + 34.0), middle, self.x);
        let turned = format!("{middle} transform=\"rotate(-90 14 {})\"", HEIGHT / 2.0);
        text(&mut svg, (14.0, HEIGHT / 2.0), &turned, self.y);
        for (number, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let places = points.iter().map(|(x, y)| format!("{:.1},{:.1} ", across(*x), down(*y)));
            let _infallible = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>",
                places.collect::<String>().trim_end()
            );
            let place = (RIGHT - 6.0, TOP + 140.0 + 15.0 * number as f64);
            text(&mut svg, place, &format!("text-anchor=\"end\" fill=\"{colour}\""), name);
        }
        svg + "</svg>\n"
    }
}

#[test]
fn a_chart_has_a_line_for_each_series_that_ends_at_its_place() {
    let lines = vec![
        ("one".to_owned(), vec![(0.0, 0.0), (47.0, 50.0)]),
        ("two".to_owned(), vec![(23.5, 25.0)]),
    ];
    let svg = Chart { title: "t".to_owned(), x: "x", y: "y", lines }.svg();
    assert!(svg.contains("points=\"64.0,308.0 704.0,34.0\""), "{svg}");
    assert!(svg.contains("points=\"384.0,171.0\""), "{svg}");
    assert_eq!(ticks(47.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
}
