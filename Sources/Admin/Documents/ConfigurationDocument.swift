package import Telemetry

/// The settings that hold in a node: `/admin/v1/configuration`.
///
/// Secrets are in files of their own, and are not here; where those files are is.
package struct ConfigurationDocument: Sendable {
    package struct Entry: Sendable {
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

    package var entries: [Entry]
    package var sites: [Site]
    /// Settings of images, in the file's spelling.
    package var images: [(name: String, text: String)]

    package init(rows: [Entry], sites: [Site], images: [(name: String, text: String)]) {
        self.entries = rows
        self.sites = sites
        self.images = images
    }

    package var json: JSON {
        [
            "settings": .list(entries.map(\.json)),
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

    static let schema = JSONSchema.object(
        .required("settings", JSONSchema.list(of: Entry.schema)),
        .required("images", JSONSchema.map(of: JSONSchema.string)),
        .required(
            "sites",
            JSONSchema.list(
                of: JSONSchema.object(
                    .required("site", JSONSchema.string), .required("origin", JSONSchema.string),
                    .required("options", JSONSchema.map(of: JSONSchema.string))))))
}

extension ConfigurationDocument.Entry {
    fileprivate var json: JSON {
        [
            "name": .text(setting.name.rawValue), "values": JSON(texts), "source": .text(source),
            "needs_restart": .bool(setting.needsRestart), "allowed": .text(setting.kind.allowed),
            "meaning": .text(setting.meaning),
        ]
    }

    fileprivate static let schema = JSONSchema.object(
        .required("name", JSONSchema.string),
        .required("values", JSONSchema.list(of: JSONSchema.string)),
        .required("source", JSONSchema.string, "Flag, environment, file and line, or built in"),
        .required("needs_restart", JSONSchema.boolean, "SIGHUP does not change it"),
        .required("allowed", JSONSchema.string), .required("meaning", JSONSchema.string))
}

/// `{"level": "info"}`: the least severe message that is logged.
package struct LogLevelDocument: Hashable, Sendable {
    package var level: String

    package init(_ level: String) {
        self.level = level
    }

    package static let levels = [
        "trace", "debug", "info", "notice", "warning", "error", "critical",
    ]
    package static let bodyBytesMax = 1_024

    package var json: JSON { ["level": .text(level)] }

    static let schema = JSONSchema.object(.required("level", JSONSchema.enumeration(levels)))
}

extension LogLevelDocument: Decodable {
    /// - Throws: ``RequestBodyError``, or the decoder's own errors.
    package init(from decoder: any Decoder) throws {
        let object = try StrictKeyedContainer(decoder, allowedKeys: ["level"])
        let allowed = Self.levels.joined(separator: ", ")
        guard let level = try object.string("level"), Self.levels.contains(level) else {
            throw RequestBodyError.invalidValue("level", allowed: allowed)
        }
        self.level = level
    }
}
