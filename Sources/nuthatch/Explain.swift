import ArgumentParser
import NodeConfiguration
import Telemetry

/// The command `nuthatch explain`, which prints what settings and keys mean.
struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain settings, and the keys of sites and images.",
        discussion: """
            Prints the meaning, the allowed values and the default. The keys of the blocks sites \
            and images have no flags: they are given in the file named by --config. With --yaml, \
            prints a file for --config in which every setting is commented out.

            Examples:
              nuthatch explain sites
              nuthatch explain images
              nuthatch explain memory-limit grace
              nuthatch explain --yaml > nuthatch.yaml

            Exit status: 0, or 64 if a name is neither a setting nor a key.
            """)

    @Argument(
        help: ArgumentHelp(
            "Name of a setting or a key; sites or images for all keys of that block. Default: "
                + "everything.", valueName: "name"))
    var names: [String] = []

    @Flag(help: "Print a file of settings, all commented out.")
    var yaml = false

    func validate() throws {
        if yaml, !names.isEmpty { throw ValidationError("--yaml prints all settings") }
        for name in names where Self.paragraphs(of: name).isEmpty {
            throw ValidationError("no setting or key is named \(name.quoted(limit: 80))")
        }
    }

    func run() {
        guard !yaml else { return print(Configuration.template.joined(separator: "\n")) }
        let everything = Setting.table.map(\.name) + ["sites", "images"]
        for name in names.isEmpty ? everything : names {
            for paragraph in Self.paragraphs(of: name) { print(paragraph) }
        }
    }

    /// Returns the explanation of a name; empty if no setting or key has it.
    private static func paragraphs(of name: String) -> [String] {
        let options =
            switch name {
            case "sites": SiteOption.options(of: .site)
            case "images":
                SiteOption.table.filter { !$0.scope.isDisjoint(with: [.images, .imageOrigins]) }
            default: SiteOption.table.filter { $0.name == name }
            }
        return [Setting.named(name)].compactMap { setting in
            setting.map { "\($0.flag) <\($0.kind.placeholder)>\n    \($0.help)\n" }
        } + options.map { "\($0.name), in \($0.blocks)\n    \($0.help)\n" }
    }
}
