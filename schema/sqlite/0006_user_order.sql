-- Whether a share is fair between its users (2) or takes them by age (1).

ALTER TABLE quota_share ADD COLUMN user_order INTEGER NOT NULL DEFAULT 1 CHECK (user_order >= 1);
