//! Problems as GitHub Actions shows them: annotations of the changed lines of a pull request.
//!
//! Source: <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>. Forgejo and Gitea read the
//! same.

use crate::model::{failure::Problem, text::lines};

use super::{Severity, path_from};

/// A workflow command, one line without its end. `directory` is where the environment repository is in the whole one.
pub fn annotation(problem: &Problem, severity: Severity, directory: &str) -> String {
    let command = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut properties = Vec::new();
    if let Some(location) = &problem.location {
        properties.push(format!("file={}", property(&path_from(directory, &location.path))));
        if location.line > 0 {
            properties.push(format!("line={}", location.line));
        }
        if location.column > 0 {
            properties.push(format!("col={}", location.column));
            properties.push(format!("endColumn={}", location.column + location.length.max(1)));
        }
    }
    properties.push(format!("title={}", property(&format!("larder: {}", problem.code()))));
    let hint = problem.hint.as_deref().map(|hint| format!("\nhint: {}", lines(hint))).unwrap_or_default();
    format!("::{command} {}::{}", properties.join(","), data(&format!("{}{hint}", lines(&problem.message))))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::annotation;
    use crate::{
        diagnostics::Severity,
        model::failure::{Category, Problem, Source},
    };

    #[test]
    fn lines_are_workflow_commands() {
        let source = Source { path: "environments/t/a,b:c%.yaml".to_owned(), text: "a: 1\n".into() };
        let problem = Problem::new(Category::Schema, "100 % wrong\n::stop").hint("write\r\nanother");
        let text = "100 %25 wrong%0A::stop%0Ahint: write%0Aanother";
        assert_eq!(
            annotation(&problem.clone().at(&source, 1, 4, 2), Severity::Error, "envs/"),
            format!(
                "::error file=envs/environments/t/a%2Cb%3Ac%25.yaml,line=1,col=4,endColumn=6,title=larder%3A schema::{text}"
            )
        );
        assert_eq!(
            annotation(&problem.in_file("a.yaml"), Severity::Warning, ""),
            format!("::warning file=a.yaml,title=larder%3A schema::{text}")
        );
        assert_eq!(
            annotation(&Problem::new(Category::Git, "gone"), Severity::Error, ""),
            "::error title=larder%3A git::gone"
        );
    }
}
