//! A picture as a list of shapes and texts, and its two drawings.

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontStyle, FontTransform, RGBColor, TextStyle, WHITE};

use super::text::{self, FAMILY};

/// The size of a picture, unless its texts need more.
pub(super) const WIDTH: i32 = 1920;
pub(super) const HEIGHT: i32 = 1080;
const BYTES_PER_PIXEL: usize = 3;
/// The PNG is drawn larger by this factor and then averaged, because the drawing library puts letters on whole pixels,
/// which would space them unevenly at the final size.
const OVERSAMPLING: i32 = 2;

/// The colour of texts.
pub(super) const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);

/// The alignment of a text to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Text {
    pub(super) text: String,
    /// The aligned edge of a level text; the middle of an upright text.
    pub(super) x: i32,
    /// The upper edge of a level text; the middle of an upright text.
    pub(super) y: i32,
    pub(super) size: u32,
    pub(super) colour: RGBColor,
    pub(super) align: Align,
    /// Whether the text reads from bottom to top.
    pub(super) upright: bool,
}

/// Left, top, right and bottom edge, in pixels from the upper left corner.
pub(super) type Edges = (i32, i32, i32, i32);

/// A shape that is drawn before the texts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Box { edges: Edges, colour: RGBColor },
    Line { from: (i32, i32), to: (i32, i32), colour: RGBColor, width: i32 },
    Triangle { corners: [(i32, i32); 3], colour: RGBColor },
}

#[derive(Debug)]
pub(super) struct Scene {
    pub(super) width: i32,
    pub(super) height: i32,
    /// Shapes in the order they are drawn.
    pub(super) shapes: Vec<Shape>,
    pub(super) texts: Vec<Text>,
    /// What a screen reader reads, which cannot see the shapes.
    title: String,
    description: String,
}

impl Text {
    #[cfg(test)]
    pub(super) fn edges(&self) -> Result<Edges, String> {
        let (width, height) = (text::width(&self.text, self.size)?, text::line_height(self.size));
        if self.upright {
            return Ok((self.x - height / 2, self.y - width / 2, self.x + height / 2, self.y + width / 2));
        }
        let left = match self.align {
            Align::Left => self.x,
            Align::Middle => self.x - width / 2,
            Align::Right => self.x - width,
        };
        Ok((left, self.y, left + width, self.y + height))
    }

    fn style(&self, scale: i32) -> TextStyle<'_> {
        let turn = if self.upright { FontTransform::Rotate270 } else { FontTransform::None };
        let size = f64::from(self.size) * f64::from(scale);
        let font = FontDesc::new(FAMILY, size, FontStyle::Normal).transform(turn);
        let across = match self.align {
            Align::Left => HPos::Left,
            Align::Middle => HPos::Center,
            Align::Right => HPos::Right,
        };
        TextStyle::from(font).color(&self.colour).pos(Pos::new(across, VPos::Top))
    }

    /// The point at which the drawing library places the text.
    fn anchor(&self, medium: &Medium) -> (i32, i32) {
        let size = f64::from(self.size);
        let below = |share: f64| (size * share).round() as i32;
        if self.upright {
            (self.x + below(medium.ascent - UPRIGHT_ASCENT), self.y)
        } else {
            (self.x, self.y + below(medium.ascent))
        }
    }
}

/// Upright text extends to the left of its middle: by this many text sizes to the foot of its letters.
const UPRIGHT_ASCENT: f64 = 0.64;

/// The differences between the two drawings.
struct Medium {
    /// Drawn pixels for each pixel of the scene.
    scale: i32,
    /// Distance, in text sizes, from the top of a line to the drawing library's top of the letters. The library puts the
    /// foot of the letters half a size below that top in a bitmap, and 0.61 sizes (0.76 em) below it in an SVG.
    ascent: f64,
}

const SVG: Medium = Medium { scale: 1, ascent: 0.26 };
const PNG: Medium = Medium { scale: OVERSAMPLING, ascent: 0.37 };

impl Scene {
    /// An empty picture of the usual height.
    pub(super) fn new(width: i32, title: &str, description: &str) -> Scene {
        let (title, description) = (title.to_owned(), description.to_owned());
        Scene { width, height: HEIGHT, shapes: Vec::new(), texts: Vec::new(), title, description }
    }

    /// Adds a level text.
    pub(super) fn text(&mut self, text: &str, (x, y): (i32, i32), size: u32, align: Align) {
        self.texts.push(Text { text: text.into(), x, y, size, colour: INK, align, upright: false });
    }

    /// Draws the picture as an SVG document.
    pub(super) fn svg(&self) -> Result<String, String> {
        let mut svg = String::new();
        self.draw(SVGBackend::with_string(&mut svg, (self.width as u32, self.height as u32)), &SVG)?;
        Ok(self.described(&svg))
    }

    /// Adds title and description behind the first tag of the document.
    fn described(&self, svg: &str) -> String {
        let (tag, rest) = svg.split_once('>').unwrap_or((svg, ""));
        let [title, description] = [&self.title, &self.description].map(|text| escaped(text));
        format!("{tag} role=\"img\">\n<title>{title}</title>\n<desc>{description}</desc>{rest}")
    }

    /// Draws the picture as a PNG file.
    pub(super) fn png(&self) -> Result<Vec<u8>, String> {
        let (width, height) = (self.width * OVERSAMPLING, self.height * OVERSAMPLING);
        let mut pixels = vec![0; width as usize * height as usize * BYTES_PER_PIXEL];
        self.draw(BitMapBackend::with_buffer(&mut pixels, (width as u32, height as u32)), &PNG)?;
        self.encode(&average(&pixels, self.width as usize)).map_err(|error| error.to_string())
    }

    fn draw<B: DrawingBackend>(&self, backend: B, medium: &Medium) -> Result<(), String> {
        text::register()?;
        self.paint(&backend.into_drawing_area(), medium).map_err(|error| error.to_string())
    }

    fn paint<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        medium: &Medium,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let scale = medium.scale;
        let at = |(x, y): (i32, i32)| (x * scale, y * scale);
        area.fill(&WHITE)?;
        for shape in &self.shapes {
            match *shape {
                Shape::Box { edges: (left, top, right, bottom), colour } => {
                    area.draw(&Rectangle::new([at((left, top)), at((right, bottom))], colour.filled()))?;
                }
                Shape::Line { from, to, colour, width } => {
                    let stroke = colour.stroke_width((width * scale) as u32);
                    area.draw(&PathElement::new(vec![at(from), at(to)], stroke))?;
                }
                Shape::Triangle { corners, colour } => {
                    area.draw(&Polygon::new(corners.map(at), colour.filled()))?;
                }
            }
        }
        for text in &self.texts {
            area.draw_text(&text.text, &text.style(scale), at(text.anchor(medium)))?;
        }
        area.present()
    }

    fn encode(&self, pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()?;
        Ok(file)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Reduces the picture to rows of `width` pixels: each pixel is the mean of the square of pixels it was drawn as.
fn average(large: &[u8], width: usize) -> Vec<u8> {
    let side = OVERSAMPLING as usize;
    let row = width * side * BYTES_PER_PIXEL;
    let mut small = Vec::with_capacity(large.len() / (side * side));
    for rows in large.chunks_exact(row * side) {
        for x in 0..width {
            small.extend((0..BYTES_PER_PIXEL).map(|channel| {
                let first = x * side * BYTES_PER_PIXEL + channel;
                let places = (0..side * side).map(|n| first + n / side * row + n % side * BYTES_PER_PIXEL);
                let sum: usize = places.map(|place| usize::from(rows[place])).sum();
                (sum / (side * side)) as u8
            }));
        }
    }
    small
}
