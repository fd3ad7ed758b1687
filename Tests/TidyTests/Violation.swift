/// One place where a rule of the house is broken.
struct Violation: Hashable, CustomStringConvertible {
    /// Path from the top of the repository; empty where the rule is not about a file.
    var path = ""
    /// Counted from 1; 0 where the rule is not about a line.
    var line = 0
    let message: String

    var description: String {
        path.isEmpty ? message : "\(path):\(line): \(message)"
    }
}
