package import Telemetry

/// The settings that hold in a node: `/admin/v1/configuration`.
///
/// Secrets are in files of their own, and are not here; where those files are is.
package struct ConfigurationDocument: Sendable {
    package struct Row: Sendable {
        package var setting: Setting
        package var texts: [String]
        /// Where it comes from, in words.
        package var source: String

        package init(_ setting: Setting, _ texts: [String], source: String) {
            self.setting = setting
            self.texts = texts
            self.source = source
        }
    }

    package struct Site: Sendable {
        package var pattern: String
        package var origin: String
        /// What the site says beside the settings: name and value.
        package var options: [(name: String, text: String)]

        package init(_ pattern: String, origin: String, options: [(name: String, text: String)]) {
            self.pattern = pattern
            self.origin = origin
            self.options = options
        }
    }

    package var rows: [Row]
    package var sites: [Site]
    /// Settings of images, in the file's spelling.
    package var images: [(name: String, text: String)]

    package init(rows: [Row], sites: [Site], images: [(name: String, text: String)]) {
        self.rows = rows
        self.sites = sites
        self.images = images
    }

    package var json: JSON {
        [
            "settings": .list(rows.map(\.json)),
            "images": .object(images.map { JSON.Member($0.name, .text($0.text)) }),
            "sites": .list(
                sites.map { site in
                    [
                        "site": .text(site.pattern), "origin": .text(site.origin),
                        "options": .object(
                            site.options.map { JSON.Member($0.name, .text($0.text)) }),
                    ]
                }),
        ]
    }

    static let shape = Shape.object(
        .has("settings", Shape.list(of: Row.shape)),
        .has("images", Shape.table(of: Shape.string)),
        .has(
            "sites",
            Shape.list(
                of: Shape.object(
                    .has("site", Shape.string), .has("origin", Shape.string),
                    .has("options", Shape.table(of: Shape.string))))))
}

extension ConfigurationDocument.Row {
    fileprivate var json: JSON {
        [
            "name": .text(setting.name.rawValue), "values": JSON(texts), "source": .text(source),
            "needs_restart": .bool(setting.needsRestart), "allowed": .text(setting.kind.allowed),
            "meaning": .text(setting.meaning),
        ]
    }

    fileprivate static let shape = Shape.object(
        .has("name", Shape.string), .has("values", Shape.list(of: Shape.string)),
        .has("source", Shape.string, "Flag, environment, file and line, or built in"),
        .has("needs_restart", Shape.boolean, "SIGHUP does not change it"),
        .has("allowed", Shape.string), .has("meaning", Shape.string))
}
