import Foundation

/// Arrows between rooms, and from rooms to packages, are those of the table.
enum ArrowRule {
    /// What `swift package dump-package` says of the package; other keys are not needed.
    struct Package: Decodable {
        struct Target: Decodable {
            let name: String
            let type: String
            let dependencies: [Dependency]
        }

        /// A target or a product that a target uses.
        struct Dependency: Decodable {
            let name: String

            private enum CodingKeys: CodingKey {
                case byName, product, target
            }

            /// Its only key says what it is; the value is a list that begins with the name.
            init(from decoder: any Decoder) throws {
                let all = try decoder.container(keyedBy: CodingKeys.self)
                guard let key = all.allKeys.first else {
                    throw DecodingError.dataCorrupted(
                        .init(codingPath: all.codingPath, debugDescription: "unknown dependency"))
                }
                var values = try all.nestedUnkeyedContainer(forKey: key)
                name = try values.decode(String.self)
            }
        }
        let targets: [Target]
    }

    /// Targets that are no room, rooms that are no target, and dependencies that the table lacks.
    ///
    /// Targets of type `test` may use what they like.
    static func violations(in package: Package, table: [Room]) -> [Violation] {
        let targets = package.targets.filter { $0.type != "test" }
        var violations: [Violation] = []
        for room in table where !targets.contains(where: { $0.name == room.name }) {
            violations.append(Violation(message: "room \(room.name) has no target"))
        }
        for target in targets {
            guard let room = table.first(where: { $0.name == target.name }) else {
                violations.append(Violation(message: "target \(target.name) is not in the table"))
                continue
            }
            let names = Set(target.dependencies.map(\.name))
            for name in names.subtracting(room.uses).subtracting(room.packages).sorted() {
                violations.append(Violation(message: "\(target.name) may not use \(name)"))
            }
        }
        return violations
    }

    /// Imports that the room's row lacks.
    static func violations(in text: SwiftText, of room: Room) -> [Violation] {
        let allowed = room.uses.union(room.packages).union(room.toolchain)
        var violations: [Violation] = []
        for (index, line) in text.code.enumerated() {
            guard line.contains("import"), let module = importedModule(line),
                !allowed.contains(module)
            else { continue }
            violations.append(
                Violation(line: index + 1, message: "\(room.name) may not import \(module)"))
        }
        return violations
    }

    /// The module that a line of code imports, whatever attributes and modifiers stand before
    /// `import`.
    static func importedModule(_ line: String) -> String? {
        let words = line.replacing(/@\w+(\([^)]*\))?/, with: " ").split(separator: " ")
        let modifiers: Set = ["public", "package", "internal", "fileprivate", "private"]
        let kinds: Set = [
            "struct", "class", "enum", "protocol", "func", "var", "let", "typealias",
        ]
        let rest = words.drop { modifiers.contains(String($0)) }
        guard rest.first == "import" else { return nil }
        let path = rest.dropFirst().drop { kinds.contains(String($0)) }.first
        return path?.split(separator: ".").first.map(String.init)
    }
}
