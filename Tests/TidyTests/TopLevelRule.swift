/// What stands at the top of the repository: the agreed names, dotfiles and a licence.
enum TopLevelRule {
    static let agreed: Set = [
        "Package.swift", "Package.resolved", "Sources", "Tests", "deploy", "Dockerfile",
        "README.md", "LICENSE", "NOTICE",
    ]

    /// The names at the top that were not agreed.
    static func violations(in names: [String]) -> [Violation] {
        names.filter { !$0.hasPrefix(".") && !agreed.contains($0) }.sorted().map {
            Violation(message: "\($0) is at the top; put it into Sources, Tests or deploy")
        }
    }
}
