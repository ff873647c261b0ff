//! The style sheet of a picture: quiet colours on light paper, and others where the reader prefers dark.

use super::text::Face;

const LIGHT: &str = "\
.paper{fill:#ffffff}
.box{fill:#ffffff;stroke:#52606d;stroke-width:1.25}
.virtual{stroke-dasharray:5 3}
.anchor{fill:#f0f4f8;stroke-width:2}
.hardware{fill:#e4e7eb;stroke-width:2}
.line{fill:none;stroke:#52606d;stroke-width:1.5}
.name,.device{fill:#1f2933}
.protocol,.option,.caption{fill:#52606d}
.outline{stroke-width:2;fill:none}
.outline.app{stroke:#7ba7d9}
.outline.server{stroke:#d9a15b}
.outline.processor{stroke:#7fb38a}
.ground.app{fill:#eaf2fb}
.ground.server{fill:#fcf3e6}
.ground.processor{fill:#eaf5ec}
.region{fill:#3e4c59}
";

const DARK: &str = "\
.paper{fill:#161b22}
.box{fill:#21262d;stroke:#9aa5b1}
.anchor{fill:#2b333c}
.hardware{fill:#323f4b}
.line{stroke:#9aa5b1}
.name,.device{fill:#f0f4f8}
.protocol,.option,.caption{fill:#b3bcc5}
.outline.app{stroke:#4a7ab0}
.outline.server{stroke:#a8763a}
.outline.processor{stroke:#4d8a5a}
.ground.app{fill:#17263a}
.ground.server{fill:#32261a}
.ground.processor{fill:#182c1e}
.region{fill:#cbd2d9}
";

/// The style sheet.
pub(super) fn sheet() -> String {
    let face = |face: Face| {
        let weight = if face.is_bold() { ";font-weight:bold" } else { "" };
        format!(".{}{{font-size:{}px{weight}}}\n", face.class(), face.size())
    };
    let faces: String = Face::ALL.into_iter().map(face).collect();
    format!(
        "text{{font-family:Verdana,\"DejaVu Sans\",Helvetica,Arial,sans-serif}}\n\
         {faces}{LIGHT}@media (prefers-color-scheme:dark){{\n{DARK}}}\n"
    )
}
