//! A backend of plotters that writes SVG without colours: the style sheet of the page decides about these,
//! so that a plot is also readable in the dark, in print and by people who see some colours alike.
//!
//! A "colour" that is drawn with is a [`Role`]. Plotters places things on whole pixels, so a canvas has
//! [`FINE`] of them for each unit of the picture.

use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::style::RGBColor;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};

use crate::report::markup;

/// The number of pixels of the canvas for each unit of the picture.
pub(super) const FINE: i32 = 10;

/// The number of series that look different.
pub(super) const LOOKS: usize = 8;

/// What a line or a text is for; the style sheet has a class for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Axis,
    Grid,
    Label,
    /// An interval around a value.
    Interval,
    /// The series with this number; after [`LOOKS`] of them, the looks repeat.
    Series(usize),
}

/// The green of the colour of a series, by which it differs from other roles.
const SERIES: u8 = 1;

impl Role {
    /// Returns the colour that stands for the role.
    pub(super) fn color(self) -> RGBColor {
        match self {
            Role::Axis => RGBColor(0, 0, 0),
            Role::Grid => RGBColor(1, 0, 0),
            Role::Label => RGBColor(2, 0, 0),
            Role::Interval => RGBColor(3, 0, 0),
            Role::Series(number) => RGBColor((number % LOOKS) as u8, SERIES, 0),
        }
    }

    fn class(color: BackendColor) -> String {
        match color.rgb {
            (number, SERIES, _) => format!("s{number}"),
            (1, ..) => "grid".to_owned(),
            (2, ..) => "label".to_owned(),
            (3, ..) => "interval".to_owned(),
            _ => "axis".to_owned(),
        }
    }
}

/// An SVG picture that is being drawn.
pub(super) struct Canvas<'a> {
    svg: &'a mut String,
    size: (u32, u32),
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl<'a> Canvas<'a> {
    /// Creates a canvas of this size, in units of the picture, that appends its elements to `svg`.
    pub(super) fn new(svg: &'a mut String, width: u32, height: u32) -> Self {
        let fine = FINE.unsigned_abs();
        Canvas {
            svg,
            size: (width * fine, height * fine),
        }
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) -> Drawn {
        // Writing to a string does not fail.
        let _ = self.svg.write_fmt(element);
        self.svg.push('\n');
        Ok(())
    }
}

/// A coordinate of the canvas, in units of the picture.
fn unit(pixels: i32) -> f64 {
    f64::from(pixels) / f64::from(FINE)
}

fn is_hidden(color: BackendColor) -> bool {
    color.alpha == 0.0
}

impl DrawingBackend for Canvas<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        let class = Role::class(color);
        self.element(format_args!(
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"0.5\"/>",
            unit(x),
            unit(y)
        ))
    }

    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        if !fill || is_hidden(style.color()) {
            return Ok(());
        }
        let class = Role::class(style.color());
        self.element(format_args!(
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            unit(left),
            unit(top),
            unit(right - left),
            unit(bottom - top)
        ))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        if is_hidden(style.color()) {
            return Ok(());
        }
        let class = Role::class(style.color());
        let points = path.into_iter().map(|(x, y)| format!("{},{}", unit(x), unit(y)));
        let points: Vec<String> = points.collect();
        self.element(format_args!(
            "<polyline class=\"{class}\" points=\"{}\"/>",
            points.join(" ")
        ))
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        _: bool,
    ) -> Drawn {
        let class = Role::class(style.color());
        self.element(format_args!(
            "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
            unit(x),
            unit(y),
            f64::from(radius) / f64::from(FINE)
        ))
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, (x, y): BackendCoord) -> Drawn {
        let (x, y) = (unit(x), unit(y));
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Right => "end",
            HPos::Center => "middle",
        };
        // As a share of the size of the letters, which browsers place by their base line.
        let down = match style.anchor().v_pos {
            VPos::Top => "0.8em",
            VPos::Center => "0.35em",
            VPos::Bottom => "-0.2em",
        };
        let turned = match style.transform() {
            FontTransform::None => String::new(),
            FontTransform::Rotate90 => format!(" transform=\"rotate(90 {x} {y})\""),
            FontTransform::Rotate180 => format!(" transform=\"rotate(180 {x} {y})\""),
            FontTransform::Rotate270 => format!(" transform=\"rotate(270 {x} {y})\""),
        };
        let class = Role::class(style.color());
        self.element(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" dy=\"{down}\" text-anchor=\"{anchor}\"{turned}>{}</text>",
            markup::html(text)
        ))
    }
}
