import Foundation
import NodeConfiguration
import Telemetry
import Testing

@Suite("The pages about settings")
struct SettingsPageTests {
    private static let guide = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources/nuthatch/nuthatch.docc")

    /// Everything below the page's head, as the tables have it.
    private var expected: String {
        var text = ""
        for section in Setting.sections {
            text += "## \(section.title)\n\n"
            text += "| setting | allowed | default | meaning |\n|---|---|---|---|\n"
            for setting in section.keys.map(\.setting) {
                let isNote = !setting.defaultNote.isEmpty || setting.defaults.isEmpty
                let cells = [
                    "`\(setting.name)`" + (setting.isList ? " (list)" : "")
                        + (setting.needsRestart ? " (restart)" : ""),
                    "`\(setting.kind.allowed)`",
                    isNote ? setting.defaultText : "`\(setting.defaultText)`",
                    "\(setting.meaning). \(setting.advice)",
                ]
                text += "| " + cells.joined(separator: " | ") + " |\n"
            }
            text += "\n"
        }
        text += "## Keys of sites\n\n"
        text += "| key | allowed | example | default | meaning |\n|---|---|---|---|---|\n"
        for option in SiteOption.options(of: .site) {
            text +=
                "| `\(option.name)` | \(code(option.allowed)) | `\(option.example)` "
                + "| \(code(option.siteDefault)) | \(option.meaning) |\n"
        }
        text += "\n## Keys of images\n\n"
        text += "| key | default | in `images` | in `origins` |\n|---|---|---|---|\n"
        for option in SiteOption.table
        where !option.scope.isDisjoint(with: [.images, .imageOrigins]) {
            let blocks = [SiteOption.Scope.images, .imageOrigins]
                .map { option.scope.contains($0) ? "yes" : "no" }
            let cells = ["`\(option.name)`", code(option.imageDefault)] + blocks
            text += "| " + cells.joined(separator: " | ") + " |\n"
        }
        return text
    }

    /// The text, as code if it has characters that Markdown interprets.
    private func code(_ text: String) -> String {
        text.contains { "*[{".contains($0) } ? "`\(text)`" : text
    }

    @Test("one has every setting and every key as the tables have them")
    func page() throws {
        let page = try String(
            contentsOf: Self.guide.appending(path: "Settings.md"), encoding: .utf8)
        let tables = page.range(of: "## Node\n").map { String(page[$0.lowerBound...]) }
        let isSame = tables == expected
        // Written where it can be copied from.
        let made = FileManager.default.temporaryDirectory.appending(path: "nuthatch-settings.md")
        if !isSame { try expected.write(to: made, atomically: true, encoding: .utf8) }
        #expect(isSame, "what it should have from \"## Node\" on is in \(made.path)")
    }

    @Test("the file that the other shows is accepted, with its commented lines as without them")
    func example() throws {
        let page = try String(
            contentsOf: Self.guide.appending(path: "Configuration.md"), encoding: .utf8)
        let blocks = page.components(separatedBy: "```yaml\n").dropFirst().map {
            $0.components(separatedBy: "```\n")[0]
        }
        let file = try #require(blocks.first)
        #expect(file.contains("sites:\n") && file.contains("images:\n"))
        #expect(faults(file) == [])
        // Lines of settings, not of prose.
        let all = file.split(separator: "\n").map { line in
            let bare = line.hasPrefix("# ") ? line.dropFirst(2) : line
            let key = String(bare.prefix { $0 != ":" })
            return Setting.named(key) != nil ? String(bare) : String(line)
        }
        #expect(all.contains { $0.hasPrefix("tls-certificate: ") })
        #expect(faults(all.joined(separator: "\n")) == [])
    }

    @Test("the template of a file has every setting, and all its lines are accepted uncommented")
    func template() throws {
        let lines = Configuration.template
        #expect(lines.allSatisfy { $0.isEmpty || $0.hasPrefix("#") })
        let bare = lines.filter { $0.contains(/^#( {2}| {4})?[^ #]+:( |$)/) }
            .map { String($0.dropFirst()) }
        let names = bare.map { String($0.prefix { $0 != ":" }) }
        let settings = Setting.table.filter { $0 != Setting.node.config.setting }
        #expect(names.filter { Setting.named($0) != nil } == settings.map(\.name))

        let defaults = zip(names, bare).filter { Setting.named($0.0)?.defaults.isEmpty == false }
        #expect(defaults.count > settings.count / 2)
        let given = try resolve(file: defaults.map(\.1).joined(separator: "\n"))
        #expect(given.listing.map { String($0.prefix { $0 != ":" }) } == defaults.map(\.0))

        let start = try #require(names.firstIndex(of: "sites"))
        // Some keys need an origin over TLS.
        let sites = bare[start...].map { $0.replacing("origin: http://", with: "origin: https://") }
        #expect(faults(sites.joined(separator: "\n")) == [])
        for option in SiteOption.options(of: .site) {
            #expect(bare[start...].contains { $0.hasPrefix("    \(option.name): ") })
        }
    }

    @Test("every example of a key is accepted where the key is")
    func examples() {
        for option in SiteOption.options(of: .site) where option != SiteOption.all.origin {
            let line = "\(option.name): \(option.example)"
            #expect(
                faults("sites:\n  a.example:\n    origin: https://o\n    \(line)\n") == [],
                "\(line)")
        }
        for option in SiteOption.options(of: .images) {
            #expect(
                faults("images:\n  \(option.name): \(option.example)\n") == [], "\(option.name)")
        }
        for option in SiteOption.options(of: .imageOrigins) {
            let line = "\(option.name): \(option.example)"
            #expect(faults("images:\n  origins:\n    '*':\n      \(line)\n") == [], "\(line)")
        }
    }

    @Test("an option's meaning is a line without a full stop, and each name is there once")
    func options() {
        #expect(Set(SiteOption.table.map(\.name)).count == SiteOption.table.count)
        #expect(SiteOption.table.count == Mirror(reflecting: SiteOption.all).children.count)
        for option in SiteOption.table {
            #expect(
                option.meaning.first?.isUppercase == true || option.meaning.hasPrefix("max-age"))
            #expect(!option.meaning.contains("\n") && !option.meaning.hasSuffix("."))
        }
    }
}
