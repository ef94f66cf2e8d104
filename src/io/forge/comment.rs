//! One comment of larder's own on a pull request, updated in place.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Forge, Kind, unexpected};
use crate::model::failure::Problem;

/// Pages of comments that are looked through for ours, 100 comments each.
const PAGES: usize = 20;

/// What became of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It is new.
    Created,
    /// It was there and says something else now.
    Updated,
    /// It says that already.
    Unchanged,
    /// There is none, and none was wanted.
    Absent,
}

/// What to do when there is no comment of larder's yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAbsent {
    /// Make one.
    Create,
    /// Leave it at that.
    Leave,
}

struct Comment {
    id: u64,
    body: String,
    author: String,
}

impl Forge {
    /// Makes larder's comment on a pull request say `body`. Ours is the one that starts with `marker` and that this
    /// token's own user wrote: nobody can have larder overwrite someone else's by quoting the marker.
    ///
    /// # Errors
    /// The forge's words.
    pub async fn comment(&self, number: u64, marker: &str, body: &str, absent: WhenAbsent) -> Result<Posted, Problem> {
        let me = self.me().await;
        let ours = |comment: &Comment| {
            comment.body.trim_start().starts_with(marker) && me.as_ref().is_none_or(|me| *me == comment.author)
        };
        let found = self.find_comment(number, ours).await?;
        let all = self.comments_path(number);
        let content = json!({"body": body});
        let Some(comment) = found else {
            if absent == WhenAbsent::Leave {
                return Ok(Posted::Absent);
            }
            self.call(Method::POST, &all, Some(&content)).await?;
            return Ok(Posted::Created);
        };
        // Forges change line ends and the white space at the end.
        let same = |text: &str| text.replace("\r\n", "\n").trim().to_owned();
        if same(&comment.body) == same(body) {
            return Ok(Posted::Unchanged);
        }
        match self.options.kind {
            Kind::Gitlab => self.call(Method::PUT, &format!("{all}/{}", comment.id), Some(&content)).await?,
            Kind::Gitea | Kind::Github => {
                self.call(Method::PATCH, &format!("issues/comments/{}", comment.id), Some(&content)).await?
            }
        };
        Ok(Posted::Updated)
    }

    fn comments_path(&self, number: u64) -> String {
        match self.options.kind {
            Kind::Gitlab => format!("merge_requests/{number}/notes"),
            Kind::Gitea | Kind::Github => format!("issues/{number}/comments"),
        }
    }

    /// The name of the token's user. The tokens of CI jobs may not ask for it.
    async fn me(&self) -> Option<String> {
        let user = self.call_api(Method::GET, "user", None).await.ok()?;
        let name = if self.options.kind == Kind::Gitlab { &user["username"] } else { &user["login"] };
        name.as_str().map(str::to_owned)
    }

    async fn find_comment(&self, number: u64, ours: impl Fn(&Comment) -> bool) -> Result<Option<Comment>, Problem> {
        let path = self.comments_path(number);
        for page in 1..=PAGES {
            let query = match self.options.kind {
                // Gives all comments at once.
                Kind::Gitea => path.clone(),
                Kind::Github => format!("{path}?per_page=100&page={page}"),
                Kind::Gitlab => format!("{path}?sort=asc&order_by=created_at&per_page=100&page={page}"),
            };
            let answer = self.call(Method::GET, &query, None).await?;
            let list = answer.as_array().ok_or_else(|| unexpected("list of comments"))?;
            if let Some(comment) = list.iter().filter_map(read).find(&ours) {
                return Ok(Some(comment));
            }
            if list.len() < 100 || self.options.kind == Kind::Gitea {
                break;
            }
        }
        Ok(None)
    }
}

fn read(value: &Value) -> Option<Comment> {
    let author = value["user"]["login"].as_str().or_else(|| value["author"]["username"].as_str());
    Some(Comment {
        id: value["id"].as_u64()?,
        body: value["body"].as_str()?.to_owned(),
        author: author.unwrap_or_default().to_owned(),
    })
}
